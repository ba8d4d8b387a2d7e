import type { Form } from './use-texts.ts';

interface NameFieldsProps {
  form: Pick<Form<{ name: string; description: string }>, 'field'>;
  isPending: boolean;
}

/** The name and the description of a project or a model. */
export const NameFields = ({ form, isPending }: NameFieldsProps) => (
  <>
    <label class="field">
      <span>Name</span>
      <input class="input" required readOnly={isPending} {...form.field('name')} />
    </label>
    <label class="field">
      <span>Description</span>
      <textarea class="input" rows={4} readOnly={isPending} {...form.field('description')} />
    </label>
  </>
);
