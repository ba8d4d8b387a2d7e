import { Button } from '../ui/button.tsx';
import { Problem } from '../ui/problem.tsx';
import type { Form } from './use-texts.ts';

interface SaveTextsProps {
  form: Pick<Form<never>, 'isTyped' | 'drop'>;
  saving: { error: unknown; isPending: boolean; isSuccess: boolean; reset: () => void };
}

/** The end of a form of texts: what went wrong, and its buttons. */
export function SaveTexts({ form: { isTyped, drop }, saving }: SaveTextsProps) {
  const takeBack = () => {
    drop();
    saving.reset();
  };
  return (
    <>
      {saving.error ? <Problem error={saving.error} /> : null}
      <div class="row">
        <Button type="submit" look="primary" disabled={saving.isPending}>
          Save
        </Button>
        {isTyped && <Button onClick={takeBack}>Take it back</Button>}
        <span role="status">{saving.isSuccess && !isTyped && 'Saved.'}</span>
      </div>
    </>
  );
}
