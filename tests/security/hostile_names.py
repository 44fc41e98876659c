"""Names as somebody would write them who wants a name to be a path, a command, an option or a page."""

from __future__ import annotations

PATHS = [
    "../other",
    "..",
    ".",
    "",
    "/etc/passwd",
    "//server/share",
    "ecg/../../other",
    "..\\other",
    "ecg\0",
    "ecg\n",
    "ecg\r\nX: y",
    "ecg ",
    " ecg",
    "~root",
    "file:///etc/passwd",
    "a" * 4096,
    "\u0435cg",  # a Cyrillic letter that looks like the first one of ecg
    "ecg\u2044x",  # a slash that is none
    "\uff0e\uff0e\uff0fother",  # full-width ../
    "e\u0301cg",
    "ecg\u202e",  # what follows is written backwards
    "ECG",
    "%2e%2e%2fother",
    "CON",
    "-rf",
]
COMMANDS = [
    "$(touch {marker})",
    "`touch {marker}`",
    "; touch {marker} ;",
    "| touch {marker}",
    "x\ntouch {marker}\n",
    "--conf spark.driver.extraJavaOptions=-javaagent:x",
    "--conf=spark.submit.pyFiles=x",
    "' || touch {marker} || '",
    "{{{{ ti.xcom_push('x', 'y') }}}}",
    "{{% for x in [1] %}}touch {marker}{{% endfor %}}",
    "__import__('os').system('touch {marker}')",
]
"""`{marker}`: a file that nobody must make."""
