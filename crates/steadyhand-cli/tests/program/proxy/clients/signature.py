"""Signs a request as Amazon's own code does. Arguments: a word, and the request as JSON. Written: its Authorization."""

import datetime
import json
import sys

import botocore.auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

request = json.loads(sys.argv[2])
moment = datetime.datetime.strptime(request["date"], "%Y%m%dT%H%M%SZ")
botocore.auth.get_current_datetime = lambda *given, **more: moment
signed = AWSRequest(method=request["method"], url=request["url"], data=request["body"].encode())
keys = Credentials("AKID", "a-secret", request["token"])
botocore.auth.SigV4Auth(keys, "bedrock", "eu-west-1").add_auth(signed)
print(json.dumps(signed.headers["Authorization"]))
