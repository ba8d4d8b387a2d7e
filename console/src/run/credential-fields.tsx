const METHODS = { password: 'Password', key: 'Key file', codes: 'One-time codes' };
export type Method = keyof typeof METHODS;

interface CredentialFieldsProps {
  method: Method;
  onMethod: (method: Method) => void;
  /** Before the names of its fields, where a form has several. */
  prefix?: string;
  /** The host that is not the one of the session. */
  at?: string;
}

/** How the user shows the host who they are. */
export const CredentialFields = ({ method, onMethod, prefix = '', at }: CredentialFieldsProps) => (
  <>
    <div
      class="tabs"
      role="radiogroup"
      aria-label={at ? `How to log in to ${at}` : 'How to log in'}
    >
      {(Object.keys(METHODS) as Method[]).map(name => (
        <label key={name}>
          <input
            type="radio"
            name={`${prefix}method`}
            checked={method === name}
            onChange={() => onMethod(name)}
          />
          {METHODS[name]}
        </label>
      ))}
    </div>
    {method === 'password' && (
      <label class="field">
        <span>Password {at ? `on ${at}` : 'there'}</span>
        <input
          class="input"
          type="password"
          name={`${prefix}password`}
          required
          autocomplete="off"
        />
        <small>It is stored encrypted, and only workers can decrypt it.</small>
      </label>
    )}
    {method === 'key' && (
      <>
        <label class="field">
          <span>Private key</span>
          <input class="input" type="file" name={`${prefix}key`} required />
          <small>Such as ~/.ssh/id_ed25519. It is sent once, and stored encrypted.</small>
        </label>
        <label class="field">
          <span>Passphrase, if it has one</span>
          <input class="input" type="password" name={`${prefix}passphrase`} autocomplete="off" />
        </label>
        <label class="field">
          <span>Certificate, if the host wants one</span>
          <input class="input" type="file" name={`${prefix}certificate`} />
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

/** What was typed or chosen in these fields. */
export async function readCredentials(fields: FormData, method: Method, prefix = '') {
  if (method === 'codes') return {};
  if (method === 'password') return { password: String(fields.get(`${prefix}password`)) };
  const file = fields.get(`${prefix}key`);
  const passphrase = String(fields.get(`${prefix}passphrase`));
  const certificate = fields.get(`${prefix}certificate`);
  // Where no file was chosen, browsers give one without a name.
  const hasCertificate = certificate instanceof File && certificate.name !== '';
  return {
    privateKey: file instanceof File ? await file.text() : '',
    ...(passphrase === '' ? {} : { passphrase }),
    ...(hasCertificate && { certificate: await certificate.text() }),
  };
}
