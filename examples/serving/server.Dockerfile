# server.py, for processors and operations that TensorFlow Serving's image does not have:
#
#   docker build -t bert-server -f examples/serving/server.Dockerfile examples/serving
#   docker run -p 8501:8501 -v $PWD/models:/models:ro bert-server
FROM python:3.11-slim
RUN pip install --no-cache-dir "aiohttp==3.*" "tensorflow==2.20.*" "tensorflow-text==2.20.*"
WORKDIR /server
COPY server.py batching_parameters.txt ./
USER nobody
EXPOSE 8501
ENTRYPOINT ["python", "server.py", "--host=0.0.0.0", "--model_name=bert", \
            "--model_base_path=/models/bert"]
CMD ["--enable_batching", "--batching_parameters_file=batching_parameters.txt"]
