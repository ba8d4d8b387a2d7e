import { type NewWebhook, useMakeWebhook } from '../service/account.ts';
import { Dialog } from '../ui/dialog.tsx';
import { DialogForm } from '../ui/dialog-form.tsx';
import { ShownOnce } from './shown-once.tsx';

type State = NonNullable<NewWebhook['states']>[number];
type Kind = NonNullable<NewWebhook['kinds']>[number];

const STATES: [State, string][] = [
  ['succeeded', 'Succeeded'],
  ['failed', 'Failed'],
  ['cancelled', 'Cancelled'],
];
/** Those whose ends somebody waits for. */
const KINDS: [Kind, string][] = [
  ['command', 'Commands'],
  ['batch', 'Batch jobs'],
  ['video', 'Videos'],
  ['parse', 'Parsed uploads'],
  ['copy', 'Copies'],
];

/** Has the ends of the user's jobs sent to a server, and shows the secret for their verification. */
export function NewWebhookDialog({ onClose }: { onClose: () => void }) {
  const make = useMakeWebhook();
  const send = (fields: FormData) => {
    const kinds = fields.getAll('kinds') as Kind[];
    const states = fields.getAll('states') as State[];
    make.mutate({
      url: String(fields.get('url')).trim(),
      ...(kinds.length > 0 && { kinds }),
      ...(states.length < STATES.length && { states }),
    });
  };
  return (
    <Dialog title="New webhook" onClose={onClose}>
      {make.data ? (
        <ShownOnce label="Secret" text={make.data.secret} onClose={onClose}>
          <p>
            Your server verifies by it that a message is ours. Libraries of{' '}
            <a href="https://www.standardwebhooks.com" rel="noreferrer">
              Standard Webhooks
            </a>{' '}
            take it as it is.
          </p>
        </ShownOnce>
      ) : (
        <DialogForm
          action="Make the webhook"
          sending={make}
          makes="webhook"
          onSend={send}
          onClose={onClose}
          autocomplete="off"
        >
          <label class="field">
            <span>Address of your server</span>
            <input
              class="input"
              name="url"
              type="url"
              required
              maxLength={2_048}
              placeholder="https://example.org/ends-of-jobs"
              autofocus
            />
            <small>It answers 2xx to what it took; else it is sent again, for three days.</small>
          </label>
          <fieldset class="field">
            <legend class="legend">Jobs that</legend>
            <div class="row choices">
              {STATES.map(([state, name]) => (
                <label key={state} class="check">
                  <input type="checkbox" name="states" value={state} defaultChecked />
                  <span>{name}</span>
                </label>
              ))}
            </div>
          </fieldset>
          <fieldset class="field">
            <legend class="legend">Of these kinds; none chosen: of all</legend>
            <div class="row choices">
              {KINDS.map(([kind, name]) => (
                <label key={kind} class="check">
                  <input type="checkbox" name="kinds" value={kind} />
                  <span>{name}</span>
                </label>
              ))}
            </div>
          </fieldset>
        </DialogForm>
      )}
    </Dialog>
  );
}
