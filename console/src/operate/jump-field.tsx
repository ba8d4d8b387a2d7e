interface JumpFieldProps {
  /** Names of hosts. */
  hosts: string[];
  jump: string | null;
  onJump?: (jump: string | null) => void;
}

/** Which host the way to another one leads through, if any. */
export const JumpField = ({ hosts, jump, onJump }: JumpFieldProps) => (
  <label class="field">
    <span>Reached through</span>
    <select
      class="input"
      name="jump"
      defaultValue={jump ?? ''}
      onChange={event => onJump?.(event.currentTarget.value || null)}
    >
      <option value="">No other host: workers connect to it themselves</option>
      {hosts.map(name => (
        <option key={name}>{name}</option>
      ))}
    </select>
    <small>A login goes to that jump host first, and from there to this address.</small>
  </label>
);

export const readJump = (fields: FormData): string | null =>
  String(fields.get('jump') ?? '') || null;
