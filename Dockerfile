# Images of swsearch for Docker (BuildKit) and Podman:
#
#     docker build --target cpu --tag swsearch .          # the program
#     docker build --target cuda --tag swsearch:cuda .    # for machines with NVIDIA GPUs
#     docker build --tag swsearch:service .               # the search service; --build-arg ENGINE=cuda for GPUs
#
# docs/install.md has commands for the first two, docs/service/operation.md those of the service. `cpu` and `cuda` have no
# entry point, because workflow systems run their own commands in an image.
ARG ENGINE=cpu

# --- wheels of the program and of its dependencies ---

FROM docker.io/library/python:3.12-slim-bookworm AS build
RUN apt-get update \
    && apt-get install --yes --no-install-recommends g++ make \
    && rm -rf /var/lib/apt/lists/*
COPY packaging/install_nvcc.sh packaging/build_pycuda.sh /source/packaging/
RUN sh /source/packaging/install_nvcc.sh /opt/cuda python
ENV CUDA_HOME=/opt/cuda/nvidia/cu13
COPY . /source
RUN pip wheel --no-cache-dir --wheel-dir /wheels \
        --config-settings cmake.define.SWSEARCH_CUDA_KERNELS=ON \
        '/source[mask,parquet,postgresql,remote,service]'

FROM build AS build-cuda
RUN sh /source/packaging/build_pycuda.sh /opt/cuda /wheels python \
    && pip wheel --no-cache-dir --wheel-dir /wheels --find-links /wheels \
        '/source[cuda]' 'nvidia-cuda-nvrtc==13.0.*'

# --- what all images share ---

FROM docker.io/library/python:3.12-slim-bookworm AS base
LABEL org.opencontainers.image.title="swsearch" \
      org.opencontainers.image.description="Exhaustive Smith-Waterman search of protein and DNA databases" \
      org.opencontainers.image.licenses="Apache-2.0 AND 0BSD" \
      org.opencontainers.image.version="0.1.0"
# Nextflow measures tasks with the program ps.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends procps \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --home-dir /var/lib/swsearch --create-home swsearch
# A container is thrown away with the stores in it, so a store is kept only where --store names one.
ENV SWSEARCH_STORE=none
WORKDIR /data
CMD ["swsearch", "--help"]

# --- the program ---

FROM base AS cpu
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir --no-index --find-links /wheels \
        'swsearch[mask,parquet,postgresql,remote,service]' \
    && rm -r /wheels
USER 10001

FROM base AS cuda
COPY --from=build-cuda /wheels /wheels
RUN pip install --no-cache-dir --no-index --find-links /wheels \
        'swsearch[cuda,mask,parquet,postgresql,remote,service]' nvidia-cuda-nvrtc \
    && rm -r /wheels
# NVIDIA's runtime of containers adds the driver of the host.
ENV NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility
USER 10001

# --- the search service ---

# hadolint ignore=DL3006
FROM ${ENGINE} AS service
ENV SWSEARCH_STORE=/var/lib/swsearch/hits.sqlite \
    XDG_CACHE_HOME=/var/lib/swsearch/cache
WORKDIR /var/lib/swsearch
VOLUME ["/var/lib/swsearch"]
EXPOSE 8765
STOPSIGNAL SIGTERM
HEALTHCHECK --start-period=30s CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8765/healthz', timeout=5)"]
ENTRYPOINT ["swsearch"]
CMD ["serve", "--help"]
