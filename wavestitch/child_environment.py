"""The environment that our child processes get: what programs need to run at all, and nothing else.

A task's environment holds Airflow's keys and the passwords that the settings refer to; whoever comes to see a child's
environment would have them. So names are listed, not left out: of a variable that nobody thought of, no child hears.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

_NAMES = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TMP", "TEMP"),
        *("LD_LIBRARY_PATH", "LD_PRELOAD", "MALLOC_ARENA_MAX", "OMP_NUM_THREADS"),
        *("PYTHONPATH", "PYTHONHASHSEED", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"),
        *("JAVA_HOME", "SPARK_CONF_DIR", "SPARK_LOCAL_DIRS", "SPARK_LOCAL_IP", "SPARK_LOG_DIR"),
        *("HADOOP_CONF_DIR", "YARN_CONF_DIR", "KUBECONFIG", "KRB5_CONFIG", "KRB5CCNAME"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR"),
    }
)
_STARTS = ("LC_",)


def child_environment(inherited: Mapping[str, str], *, also: Iterable[str] = ()) -> dict[str, str]:
    """What a child gets of `inherited`; `also` names further variables."""
    named = _NAMES.union(also)
    return {name: value for name, value in inherited.items() if name in named or name.startswith(_STARTS)}
