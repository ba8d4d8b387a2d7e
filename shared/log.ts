import { type Logger, pino } from 'pino';

export type { Logger };

/** The process's log: JSON lines on standard error, so that standard output is for people and scripts. Secrets are cut out by name. */
export function createLog({ level, name }: { level: string; name: string }): Logger {
  return pino(
    {
      level,
      base: { name, pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      redact: {
        paths: [
          'password',
          'privateKey',
          'passphrase',
          'authorization',
          'cookie',
          'sealed',
        ].flatMap(key => [key, `*.${key}`, `*.*.${key}`]),
        censor: '[redacted]',
      },
    },
    pino.destination({ fd: 2, sync: true }),
  );
}
