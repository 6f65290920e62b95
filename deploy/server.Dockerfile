# A server without Spark: HTTP, the page, PostgreSQL clients, warehouses in directories and in object
# stores with the catalog in PostgreSQL, topics of Kafka. Build it from the root of the repository:
#   docker build -f deploy/server.Dockerfile -t corollary .
FROM python:3.12-slim-bookworm

WORKDIR /opt/corollary
COPY pyproject.toml README.md LICENSE ./
COPY requirements/dev.txt requirements/
COPY src src
# The versions that are tested; not all of that file is for this image, so they are constraints.
RUN grep -oE '^[A-Za-z0-9._-]+==[^ ;]+' requirements/dev.txt > constraints.txt
RUN pip install --no-cache-dir --constraint constraints.txt ".[serve,objects,postgresql,kafka]"

RUN useradd --uid 1000 --create-home corollary && mkdir /warehouse && chown corollary /warehouse
USER corollary
WORKDIR /home/corollary
VOLUME /warehouse
EXPOSE 8765 5433
HEALTHCHECK --interval=10s CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8765/healthz')"]

# A server needs a warehouse, which the first run makes:
#   docker run --rm -v corollary:/warehouse -v ./program:/program:ro corollary run /program/main.sql --warehouse /warehouse/main
ENTRYPOINT ["corollary"]
CMD ["serve", "/warehouse/main", "--engine", "local", "--host", "0.0.0.0", "--behind-proxy"]
