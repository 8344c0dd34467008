# Airflow with the DAGs, the library, the configs and the trainer's source: `docker build --target airflow`.
FROM apache/airflow:3.3.2 AS airflow

COPY --chown=airflow:0 requirements.txt constraints.txt /opt/airflow/
RUN pip install --no-cache-dir --requirement /opt/airflow/requirements.txt --constraint /opt/airflow/constraints.txt

# Made here, so that the volumes mounted there belong to the user airflow.
RUN mkdir -p /opt/airflow/.localcloud /opt/airflow/login /opt/airflow/logs

COPY --chown=airflow:0 plugins /opt/airflow/plugins
COPY --chown=airflow:0 include /opt/airflow/include
COPY --chown=airflow:0 trainer /opt/airflow/trainer
COPY --chown=airflow:0 dags /opt/airflow/dags

# The stand-ins for Google Cloud (profile `local`), with the trainer's own environment, in which they run the replicas of jobs.
FROM airflow AS localcloud

COPY --chown=airflow:0 docker /opt/airflow/docker
RUN pip install --no-cache-dir --requirement /opt/airflow/include/localcloud/requirements.txt \
        --constraint /opt/airflow/constraints.txt \
    && python -m venv /home/airflow/trainer \
    && /home/airflow/trainer/bin/pip install --no-cache-dir --requirement /opt/airflow/trainer/requirements.txt
