# shellcheck shell=sh
# What master and workers have in common. The secret reaches Spark in a file in memory: as no argument and no variable.
# (Of a file that spark.authenticate.secret.file names it takes the secret on Kubernetes alone.)
SPARK_HOME=$(python -c 'import importlib.util; print(importlib.util.find_spec("pyspark").submodule_search_locations[0])')
SPARK_LOCAL_IP=${SPARK_HOST:?}
SPARK_NO_DAEMONIZE=1
SPARK_DAEMON_MEMORY=${SPARK_DAEMON_MEMORY:-512m}
SPARK_DAEMON_JAVA_OPTS="-XX:+UseSerialGC -XX:-UsePerfData -XX:-CreateCoredumpOnCrash"
export SPARK_HOME SPARK_LOCAL_IP SPARK_NO_DAEMONIZE SPARK_DAEMON_MEMORY SPARK_DAEMON_JAVA_OPTS

settings=/tmp/spark.properties
rm -f "$settings"
(umask 077 && cat >"$settings") <<EOF
spark.authenticate true
spark.authenticate.secret $(cat /run/secrets/spark_secret)
spark.network.crypto.enabled true
spark.network.crypto.cipher AES/GCM/NoPadding
spark.network.crypto.authEngineVersion 2
spark.master.rest.enabled false
spark.ui.killEnabled false
spark.worker.cleanup.enabled true
spark.redaction.regex (?i)secret|password|token|credential
EOF
