import { nearestWord } from '../nearest-word.ts';
import { SETTINGS } from './settings.ts';

const NAMES = Object.keys(SETTINGS);
/** What Node, shells, container images, other programs and docker-compose.yml read, in `.env` too. */
const OF_OTHERS =
  /^(NODE_|NPM_|PG[A-Z]|POSTGRES_|MINIO_|AWS_|COMPOSE_|DOCKER_|SSL_CERT_|LC_|XDG_|WINDLASS_|UV_)|^((HTTPS?|ALL|NO)_PROXY|(OWNER|API|WORKER|REDIS|S3_ROOT)_PASSWORD|SETTINGS_FILE|LOG_RETENTION_DAYS|LIMIT_(AS|CORE|CPU|DATA|FSIZE|MEM|MEMLOCK|MEMORY|NOFILE|NPROC|RSS|STACK)|PATH|HOME|TMPDIR|TZ|LANG|DEBUG)$/;

/**
 * A line for each variable that no program reads and that was probably meant for a setting. The environment holds those
 * of other programs, too: a setting that is set is not meant, and a short name is like too many. `own` are the names of
 * a file that is for settings, where every other name is told.
 */
export function findMisspelt(
  environment: Record<string, string | undefined>,
  own: readonly string[] = [],
): string[] {
  return Object.keys(environment).flatMap(name => {
    if (!environment[name] || Object.hasOwn(SETTINGS, name)) return [];
    if (OF_OTHERS.test(name.toUpperCase())) return [];
    const unset = NAMES.filter(setting => !environment[setting]);
    if (own.includes(name) || name.startsWith('LIMIT_'))
      return [describe(name, findNearest(name, unset, 2))];
    const near =
      findNearest(name, unset.filter(isLong(9)), 1) ??
      findNearest(name, unset.filter(isLong(12)), 2);
    return near ? [describe(name, near)] : [];
  });
}

const isLong = (length: number) => (name: string) => name.length >= length;

const describe = (name: string, meant: string | undefined) =>
  `${name} is no setting${meant ? `. Is ${meant} meant?` : ': see docs/settings.md.'}`;

const findNearest = (name: string, settings: string[], most: number) =>
  nearestWord(name.toUpperCase(), settings, most);
