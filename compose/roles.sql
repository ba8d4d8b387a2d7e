-- Run once by the image of PostgreSQL, when it makes its data: nothing of Windlass runs as its superuser.
\getenv owner OWNER_PASSWORD
\getenv api API_PASSWORD
\getenv worker WORKER_PASSWORD
CREATE ROLE windlass_owner LOGIN PASSWORD :'owner';
CREATE ROLE windlass_api LOGIN PASSWORD :'api';
CREATE ROLE windlass_worker LOGIN PASSWORD :'worker' IN ROLE windlass_api;
CREATE DATABASE windlass OWNER windlass_owner;
