#!/bin/sh
# Makes the bucket, and a user of MinIO who may use it and nothing else: no process of Windlass has the root key. Repeatable.
set -eu
export MC_CONFIG_DIR=/tmp/mc
mc alias set store http://minio:9000 root "$ROOT_PASSWORD" >/dev/null
mc mb --ignore-existing store/windlass
cat >/tmp/policy.json <<'POLICY'
{
  "Version": "2012-10-17",
  "Statement": [
    {
      "Effect": "Allow",
      "Action": ["s3:GetBucketLocation", "s3:ListBucket", "s3:ListBucketMultipartUploads"],
      "Resource": ["arn:aws:s3:::windlass"]
    },
    {
      "Effect": "Allow",
      "Action": [
        "s3:GetObject",
        "s3:PutObject",
        "s3:DeleteObject",
        "s3:AbortMultipartUpload",
        "s3:ListMultipartUploadParts"
      ],
      "Resource": ["arn:aws:s3:::windlass/*"]
    }
  ]
}
POLICY
mc admin policy create store windlass /tmp/policy.json
mc admin user add store windlass "$S3_SECRET_KEY"
# Refused where it is attached already.
mc admin policy attach store windlass --user windlass || mc admin policy entities store --user windlass
