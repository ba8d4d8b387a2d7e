/**
 * `npm run check:packages`: the licences of what is shipped, and its known vulnerabilities where the registry tells of
 * them.
 */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { readAudit } from './packages/audit.ts';
import { findUnallowed, listShipped } from './packages/licences.ts';

// This file runs from dist/scripts.
const root = fileURLToPath(new URL('../../', import.meta.url));

const shipped = listShipped(root);
const unallowed = findUnallowed(shipped);
for (const { name, licence } of unallowed)
  console.error(`licences: ${name} has ${licence ?? 'none'}: see scripts/packages/licences.ts`);
if (unallowed.length === 0) console.log(`licences: ok, ${shipped.length} packages`);

const { stdout } = spawnSync('npm', ['audit', '--omit=dev', '--json'], {
  cwd: root,
  encoding: 'utf8',
});
const audit = readAudit(stdout);
if (audit === undefined) console.log('npm audit: skipped, this registry does not answer it');
else {
  for (const line of audit) console.error(`npm audit: ${line}`);
  if (audit.length === 0) console.log('npm audit: ok');
}
process.exitCode = unallowed.length > 0 || (audit ?? []).length > 0 ? 1 : 0;
