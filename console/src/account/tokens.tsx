import { useState } from 'preact/hooks';
import { type Token, useEndOwnToken, useTokens } from '../service/account.ts';
import { Button } from '../ui/button.tsx';
import { ConfirmDialog } from '../ui/confirm-dialog.tsx';
import { PlusIcon } from '../ui/icons.tsx';
import { ListSection } from '../ui/list-section.tsx';
import { TableBox } from '../ui/table-box.tsx';
import { Ago, Time } from '../ui/time.tsx';
import { NewTokenDialog } from './new-token-dialog.tsx';

/** How the user's programs log in. */
export function Tokens() {
  const { data, error } = useTokens();
  const [isMaking, setMaking] = useState(false);
  const [ended, setEnded] = useState<Token>();
  const add = (
    <Button look="primary" onClick={() => setMaking(true)}>
      <PlusIcon />
      New token
    </Button>
  );
  return (
    <>
      <ListSection
        title="Tokens"
        what="your tokens"
        items={data}
        error={error}
        add={add}
        empty={{
          title: 'No token yet',
          words:
            'A notebook, a script or the command line logs in by a token instead of your password. Make one for each, so that you can end it alone.',
        }}
      >
        {tokens => <TokenTable tokens={tokens} onEnd={setEnded} />}
      </ListSection>
      {isMaking && <NewTokenDialog onClose={() => setMaking(false)} />}
      {ended && <EndToken token={ended} onClose={() => setEnded(undefined)} />}
    </>
  );
}

const TokenTable = ({ tokens, onEnd }: { tokens: Token[]; onEnd: (token: Token) => void }) => (
  <TableBox label="Tokens">
    <table class="plain">
      <thead>
        <tr>
          <th scope="col">Token</th>
          <th scope="col">May</th>
          <th scope="col">Made</th>
          <th scope="col">Expires</th>
          <th scope="col">Used</th>
          <th scope="col">
            <span class="visually-hidden">Actions</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {tokens.map(token => (
          <tr key={token.id}>
            <th scope="row" class="ellipsis" title={token.name}>
              {token.name}
            </th>
            <td>{token.scope === 'read' ? 'Read' : 'Read and write'}</td>
            <td>
              <Time at={token.created} />
            </td>
            <td>{token.expires === null ? 'Never' : <Time at={token.expires} />}</td>
            <td>
              {token.used === null ? <span class="muted">Never</span> : <Ago at={token.used} />}
            </td>
            <td class="actions">
              <Button size="small" aria-label={`End ${token.name}`} onClick={() => onEnd(token)}>
                End
              </Button>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  </TableBox>
);

function EndToken({ token, onClose }: { token: Token; onClose: () => void }) {
  const end = useEndOwnToken();
  return (
    <ConfirmDialog
      title={`End ${token.name}?`}
      action="End the token"
      isPending={end.isPending}
      error={end.error}
      onConfirm={() => end.mutate(token.id, { onSuccess: onClose })}
      onClose={onClose}
    >
      <p>Programs that have it are refused from now on. There is no way back.</p>
    </ConfirmDialog>
  );
}
