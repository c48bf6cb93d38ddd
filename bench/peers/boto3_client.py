"""boto3's get_object with a Range, on threads."""

import boto3
import botocore.config
import workload

work = workload.load()
client = boto3.client(
    "s3", endpoint_url=work.endpoint, region_name=work.region, verify=work.ca_bundle,
    aws_access_key_id=work.access_key, aws_secret_access_key=work.secret_key,
    config=botocore.config.Config(max_pool_connections=work.in_flight,
                                  s3={"addressing_style": "path"}))


def read(offset):
    answer = client.get_object(Bucket=work.bucket, Key=work.key,
                               Range=f"bytes={offset}-{offset + work.range_bytes - 1}")
    return len(answer["Body"].read())


workload.with_threads(work, read, f"boto3 {boto3.__version__}")
