# shellcheck shell=sh
# What master and workers have in common. The secret reaches Spark in a file in memory: as no argument and no variable.
# (Of a file that spark.authenticate.secret.file names it takes the secret on Kubernetes alone.)
SPARK_HOME=$(python -c 'import importlib.util; print(importlib.util.find_spec("pyspark").submodule_search_locations[0])')
SPARK_LOCAL_IP=${SPARK_HOST:?}
SPARK_NO_DAEMONIZE=1
SPARK_DAEMON_MEMORY=${SPARK_DAEMON_MEMORY:-512m}
SPARK_DAEMON_JAVA_OPTS="-XX:+UseSerialGC -XX:-UsePerfData -XX:-CreateCoredumpOnCrash"
export SPARK_HOME SPARK_LOCAL_IP SPARK_NO_DAEMONIZE SPARK_DAEMON_MEMORY SPARK_DAEMON_JAVA_OPTS

# An executor says something of each task, for as long as its application runs, into the worker's folder, which is in
# memory: of either of its two logs the last 24 MiB stay.
settings=/tmp/spark.properties
rm -f "$settings"
(umask 077 && cat >"$settings") <<EOF
spark.authenticate true
spark.authenticate.secret $(cat /run/wavestitch/spark_secret)
spark.network.crypto.enabled true
spark.network.crypto.cipher AES/GCM/NoPadding
spark.network.crypto.authEngineVersion 2
spark.master.rest.enabled false
spark.ui.killEnabled false
spark.worker.cleanup.enabled true
spark.executor.logs.rolling.strategy size
spark.executor.logs.rolling.maxSize 8388608
spark.executor.logs.rolling.maxRetainedFiles 2
spark.redaction.regex (?i)secret|password|token|credential
EOF
