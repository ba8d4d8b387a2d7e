import { type NewToken, useMakeToken } from '../service/account.ts';
import { serviceNow } from '../service/clock.ts';
import { SERVICE_PATH } from '../service/place.ts';
import { Dialog } from '../ui/dialog.tsx';
import { DialogForm } from '../ui/dialog-form.tsx';
import { ShownOnce } from './shown-once.tsx';

const DAY_MS = 86_400_000;
/** Days that a token is good for; 0: until it is ended. */
const LIVES = [
  { days: 7, name: 'In a week' },
  { days: 30, name: 'In 30 days' },
  { days: 90, name: 'In 90 days' },
  { days: 365, name: 'In a year' },
  { days: 0, name: 'Never' },
];

/** Makes a token for a program, and shows it. */
export function NewTokenDialog({ onClose }: { onClose: () => void }) {
  const make = useMakeToken();
  const send = (fields: FormData) => {
    const days = Number(fields.get('days'));
    make.mutate({
      name: String(fields.get('name')).trim(),
      scope: fields.get('scope') as NewToken['scope'],
      ...(days > 0 && { expires: new Date(serviceNow() + days * DAY_MS).toISOString() }),
    });
  };
  const service = new URL(SERVICE_PATH, location.href).href.replace(/\/$/, '');
  return (
    <Dialog title="New token" onClose={onClose}>
      {make.data ? (
        <ShownOnce label="Token" text={make.data.token} onClose={onClose}>
          <p>
            Programs take it from <code>WINDLASS_TOKEN</code>, with{' '}
            <code>WINDLASS_URL={service}</code>, or send it as{' '}
            <code>Authorization: Bearer &lt;token&gt;</code>.
          </p>
        </ShownOnce>
      ) : (
        <DialogForm
          action="Make the token"
          sending={make}
          makes="token"
          onSend={send}
          onClose={onClose}
          autocomplete="off"
        >
          <label class="field">
            <span>Name</span>
            <input
              class="input"
              name="name"
              required
              maxLength={100}
              placeholder="notebook"
              autofocus
            />
            <small>What it is for, so that you know later which one to end.</small>
          </label>
          <fieldset class="field">
            <legend class="legend">What it may</legend>
            <label class="check">
              <input type="radio" name="scope" value="read" defaultChecked />
              <span>Read: looks at jobs, projects and results, and reaches no host</span>
            </label>
            <label class="check">
              <input type="radio" name="scope" value="write" />
              <span>Read and write: runs commands and changes what you may change</span>
            </label>
          </fieldset>
          <label class="field">
            <span>Expires</span>
            <select class="input" name="days" defaultValue="90">
              {LIVES.map(({ days, name }) => (
                <option key={days} value={days}>
                  {name}
                </option>
              ))}
            </select>
          </label>
        </DialogForm>
      )}
    </Dialog>
  );
}
