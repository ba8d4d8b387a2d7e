/** `npm run docs`: generates pages of docs/ from the code. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ERROR_MEANINGS } from '../shared/errors/error-meanings.ts';
import { ERRORS, type ErrorCode } from '../shared/errors/errors.ts';
import { packageRoot } from '../shared/process/package-root.ts';
import { describeSettings } from '../shared/settings/settings.ts';

const NOTICE = '<!-- Made from the code by `npm run docs`: change it there. -->';

/** The generated pages: their paths in the checkout and their texts. */
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
    const retry = 'retry' in ERRORS[code] ? 'yes' : '';
    return `| ${[`\`${code}\``, status, title, meaning, remedy, retry].join(' | ')} |`;
  });
  return `${NOTICE}

# Errors

Every error answer is \`application/problem+json\` (RFC 9457). The header \`X-Service-Message\` repeats its \`detail\` in
printable ASCII, \`X-Service-Hint\` its \`hint\` if there is one:

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

\`code\` is stable and meant for programs; \`detail\` begins with the title and is meant for people. \`type\` links to the
code's entry in the service's own documentation. \`requestId\` equals the answer's \`X-Request-Id\` and appears in the log. A
failed job has the same \`code\`, \`detail\` and \`hint\` in its \`error\`. "Retry" marks errors after which the same request may
succeed later; wait for \`Retry-After\` seconds if the answer has it.

| code | status | title | meaning | what to do | retry |
| --- | --- | --- | --- | --- | --- |
${rows.join('\n')}
`;
}

function describeAllSettings(): string {
  return `${NOTICE}

# Settings

Settings are environment variables. \`npm start\` also reads the file \`.env\` in the current directory; the environment takes
precedence. Every program checks all its settings before it starts anything and reports all mistakes together. An empty
value counts as absent, also where an empty variable of the environment takes precedence over \`.env\`.

In \`.env\` a line is \`NAME=value\`, and \`#\` after a space begins a comment; a value that has \`#\` or newlines stands in \`'\` or
\`"\`, of which \`"\` makes \`\\n\` a newline. Any other line, or a file that is not in UTF-8, ends the start.

**Misspelt names** are told at the start, in a warning that names the setting that may be meant, and nothing is refused for them.
In \`.env\` that is every name but those of settings and known tools. In the environment, which holds variables of other
programs too, it is names that begin with \`LIMIT_\`, and those that one or two letters make a longer setting that is not set.

${describeSettings()}
`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const { path, text } of makeDocs()) {
    writeFileSync(join(fileURLToPath(packageRoot), path), text);
    console.log(path);
  }
}
