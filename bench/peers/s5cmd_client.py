"""s5cmd: `cat` of whole objects as large as a range (it has no ranged GET), one process for all."""

import os
import resource
import subprocess
import sys

import workload

work = workload.load()
program = os.path.join(os.path.dirname(sys.executable), "s5cmd")
environment = {**os.environ, "AWS_ACCESS_KEY_ID": work.access_key,
               "AWS_SECRET_ACCESS_KEY": work.secret_key, "AWS_REGION": work.region}
orders = "".join(f"cat s3://{work.bucket}/{work.objects[i % len(work.objects)]}\n"
                 for i in range(work.requests))
version = subprocess.run([program, "version"], capture_output=True, text=True, check=True).stdout
meter = workload.Meter(work, resource.RUSAGE_CHILDREN)
meter.start()
done = subprocess.run([program, "--endpoint-url", work.endpoint, "--no-verify-ssl", "--numworkers",
                       str(work.in_flight), "run"], input=orders, text=True, env=environment,
                      stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
if done.returncode != 0:
    raise SystemExit(done.stderr[-500:])
meter.report(f"s5cmd {version.split('-')[0].strip()}")
