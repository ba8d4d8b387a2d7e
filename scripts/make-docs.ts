/** `npm run docs`: writes the pages under docs/ that are made from the code. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ERROR_MEANINGS } from '../shared/error-meanings.ts';
import { ERRORS, type ErrorCode } from '../shared/errors.ts';
import { packageRoot } from '../shared/package-root.ts';
import { describeSettings } from '../shared/settings.ts';

const NOTICE = '<!-- Made from the code by `npm run docs`: change it there. -->';

/** The pages made from the code: their path in the checkout and their text. */
export function makeDocs(): { path: string; text: string }[] {
  return [
    { path: 'docs/errors.md', text: describeErrors() },
    { path: 'docs/settings.md', text: describeAllSettings() },
  ];
}

function describeErrors(): string {
  const rows = (Object.keys(ERRORS) as ErrorCode[]).map(code => {
    const { status, title } = ERRORS[code];
    const { meaning, remedy } = ERROR_MEANINGS[code];
    const again = 'retry' in ERRORS[code] ? 'yes' : '';
    return `| ${[`\`${code}\``, status, title, meaning, remedy, again].join(' | ')} |`;
  });
  return `${NOTICE}

# Errors

Every error answer is \`application/problem+json\` (RFC 9457) and carries the header \`X-Service-Message\`, which is its
\`detail\` in printable ASCII, and \`X-Service-Hint\` where there is a hint:

\`\`\`json
{
  "type": "/api/docs#session_not_found",
  "title": "Session does not exist or has timed out.",
  "status": 404,
  "detail": "Session does not exist or has timed out.",
  "code": "session_not_found",
  "hint": "Open a session with POST /api/remotes.",
  "requestId": "4f6d1c1e-8f0b-4a53-9d57-0c7cf7a4a2c9"
}
\`\`\`

\`code\` is stable: decide by it; \`type\` leads to its place on the page of the service itself. \`detail\` begins with the title and is written for people. \`requestId\` is also the
answer's \`X-Request-Id\` and stands in the log. A failed job has the same \`code\`, \`detail\` and \`hint\` in its
\`error\`. "Again" marks what may succeed later without anybody changing anything; where an answer has \`Retry-After\`,
wait for so many seconds.

| code | status | title | meaning | what to do | again |
| --- | --- | --- | --- | --- | --- |
${rows.join('\n')}
`;
}

function describeAllSettings(): string {
  return `${NOTICE}

# Settings

Settings come from the environment; \`npm start\` reads a file \`.env\` in the current directory too, and the environment
wins. All mistakes are told at once, before anything is started. An empty value counts as absent.

${describeSettings()}
`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const { path, text } of makeDocs()) {
    writeFileSync(join(fileURLToPath(packageRoot), path), text);
    console.log(path);
  }
}
