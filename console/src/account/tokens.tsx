import { useState } from 'preact/hooks';
import { type Token, useEndOwnToken, useTokens } from '../service/account.ts';
import { Button } from '../ui/button.tsx';
import { ConfirmDialog } from '../ui/confirm-dialog.tsx';
import { PlusIcon } from '../ui/icons.tsx';
import { ListSection } from '../ui/list-section.tsx';
import { type Column, Table } from '../ui/table.tsx';
import { Time, Used } from '../ui/time.tsx';
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
  <Table
    label="Tokens"
    rows={tokens}
    keyOf={({ id }) => id}
    columns={COLUMNS}
    actions={token => (
      <Button size="small" aria-label={`End ${token.name}`} onClick={() => onEnd(token)}>
        End
      </Button>
    )}
  />
);

const COLUMNS: Column<Token>[] = [
  { name: 'Token', look: 'ellipsis', title: ({ name }) => name, cell: ({ name }) => name },
  { name: 'May', cell: ({ scope }) => (scope === 'read' ? 'Read' : 'Read and write') },
  { name: 'Made', cell: ({ created }) => <Time at={created} /> },
  { name: 'Expires', cell: ({ expires }) => (expires === null ? 'Never' : <Time at={expires} />) },
  {
    name: 'Used',
    cell: ({ used, created }) =>
      used === null ? <span class="muted">Never</span> : <Used token={{ used, created }} />,
  },
];

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
