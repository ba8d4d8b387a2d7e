import { type Token, useEndToken, useTokensOf } from '../service/operations.ts';
import { Button } from '../ui/button.tsx';
import { Problem } from '../ui/problem.tsx';
import { Used } from '../ui/time.tsx';
import { Wait } from '../ui/wait.tsx';

/** The tokens of a user's programs: when they were used last, and their end. */
export function TokensOf({ username }: { username: string }) {
  const { data, error } = useTokensOf(username);
  const end = useEndToken(username);
  const trouble = error ?? end.error;
  return (
    <section class="form" aria-label="Tokens">
      <h3>Tokens</h3>
      {trouble && <Problem error={trouble} />}
      {!data && !error && <Wait>Asking for tokens …</Wait>}
      {data?.length === 0 && (
        <p class="muted">None: no program logs in as {username} by a token.</p>
      )}
      <ul class="tokens">
        {data?.map(token => (
          <li key={token.id} class="row">
            <span class="grow">
              <strong>{token.name}</strong> <Described token={token} />
            </span>
            <Button
              size="small"
              look="danger"
              disabled={end.isPending}
              aria-label={`End the token ${token.name}`}
              onClick={() => end.mutate(token.id)}
            >
              End
            </Button>
          </li>
        ))}
      </ul>
    </section>
  );
}

const Described = ({ token: { scope, used, created } }: { token: Token }) => (
  <span class="muted">
    {scope === 'read' ? 'reads only' : 'reads and writes'},{' '}
    {used ? (
      <>
        used <Used token={{ used, created }} />
      </>
    ) : (
      'never used'
    )}
  </span>
);
