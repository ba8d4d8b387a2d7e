const METHODS = { password: 'Password', key: 'Key file', codes: 'One-time codes' };
export type Method = keyof typeof METHODS;

interface CredentialFieldsProps {
  method: Method;
  onMethod: (method: Method) => void;
}

/** How the user shows the host who they are. */
export const CredentialFields = ({ method, onMethod }: CredentialFieldsProps) => (
  <>
    <div class="tabs" role="radiogroup" aria-label="How to log in">
      {(Object.keys(METHODS) as Method[]).map(name => (
        <label key={name}>
          <input
            type="radio"
            name="method"
            checked={method === name}
            onChange={() => onMethod(name)}
          />
          {METHODS[name]}
        </label>
      ))}
    </div>
    {method === 'password' && (
      <label class="field">
        <span>Password there</span>
        <input class="input" type="password" name="password" required autocomplete="off" />
        <small>It is stored encrypted, and only workers can decrypt it.</small>
      </label>
    )}
    {method === 'key' && (
      <>
        <label class="field">
          <span>Private key</span>
          <input class="input" type="file" name="key" required />
          <small>Such as ~/.ssh/id_ed25519. It is sent once, and stored encrypted.</small>
        </label>
        <label class="field">
          <span>Passphrase, if it has one</span>
          <input class="input" type="password" name="passphrase" autocomplete="off" />
        </label>
        <label class="field">
          <span>Certificate, if the host wants one</span>
          <input class="input" type="file" name="certificate" />
          <small>Of that key, by OpenSSH: such as ~/.ssh/id_ed25519-cert.pub.</small>
        </label>
      </>
    )}
    {method !== 'codes' && (
      <p class="muted hint">Where the host asks for a code as well, it does so in the next step.</p>
    )}
    {method === 'codes' && (
      <p class="muted">The host asks in the next step, for a code of your app for instance.</p>
    )}
  </>
);
