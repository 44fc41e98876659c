-- Two databases, each of its own role, which reaches no other one. Run again, it sets the passwords and changes nothing else.
\set ON_ERROR_STOP on
\set airflow_password `cat /run/secrets/airflow_database_password`
\set catalog_password `cat /run/secrets/catalog_password`
SELECT format('CREATE ROLE %I LOGIN', name) FROM (VALUES ('airflow'), ('catalog')) AS wanted (name)
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) \gexec
SELECT format('CREATE DATABASE %I OWNER %I', name, name) FROM (VALUES ('airflow'), ('catalog')) AS wanted (name)
WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = name) \gexec
ALTER ROLE airflow PASSWORD :'airflow_password';
ALTER ROLE catalog PASSWORD :'catalog_password';
REVOKE CONNECT ON DATABASE airflow, catalog, postgres, template1 FROM PUBLIC;
