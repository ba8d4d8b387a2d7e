/**
 * The known vulnerabilities in an answer of `npm audit --json`, a line each; undefined where the registry gave none.
 * npm ends with status 1 in either case.
 */
export function readAudit(text: string): string[] | undefined {
  const { vulnerabilities } = parse(text);
  if (vulnerabilities === undefined) return undefined;
  return Object.values(vulnerabilities).map(
    ({ name, severity, range }) => `${name} ${range} (${severity})`,
  );
}

interface AuditAnswer {
  vulnerabilities?: Record<string, { name: string; severity: string; range: string }>;
}

function parse(text: string): AuditAnswer {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}
