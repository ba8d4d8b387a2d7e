import { CredentialFields, type Method, readCredentials } from './credential-fields.tsx';

interface JumpFieldsProps {
  /** The jump host's name. */
  jump: string;
  username: string;
  /** Undefined: the same credential as for the host. */
  method: Method | undefined;
  onMethod: (method: Method | undefined) => void;
}

const PREFIX = 'jump-';

/** How the user logs in to the jump host on the way, where that takes something else than the host. */
export const JumpFields = ({ jump, username, method, onMethod }: JumpFieldsProps) => (
  <fieldset class="form" aria-label={`Login to ${jump}`}>
    <label class="check">
      <input
        type="checkbox"
        checked={method !== undefined}
        onChange={event => onMethod(event.currentTarget.checked ? 'password' : undefined)}
      />
      <span>The way leads through {jump}, where I log in otherwise</span>
    </label>
    {method !== undefined && (
      <>
        <label class="field">
          <span>User name on {jump}</span>
          <input
            class="input"
            name={`${PREFIX}username`}
            required
            autocomplete="off"
            autocapitalize="none"
            spellcheck={false}
            defaultValue={username}
          />
        </label>
        <CredentialFields method={method} onMethod={onMethod} prefix={PREFIX} at={jump} />
      </>
    )}
  </fieldset>
);

/** What a request says of the jump host. */
export async function readJumpCredentials(fields: FormData, method: Method) {
  const username = String(fields.get(`${PREFIX}username`));
  return { username, ...(await readCredentials(fields, method, PREFIX)) };
}
