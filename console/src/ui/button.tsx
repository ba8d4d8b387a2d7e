import type { ButtonHTMLAttributes, TargetedMouseEvent } from 'preact';

type ButtonProps = Omit<ButtonHTMLAttributes, 'onClick'> & {
  look?: 'primary' | 'danger' | 'quiet';
  size?: 'small' | 'icon';
  /** Every click counts, however fast they come: of a step, for instance. */
  repeats?: boolean;
  onClick?: (event: TargetedMouseEvent<HTMLButtonElement>) => void;
};

/**
 * A button that submits nothing unless its type says so. A double click counts once: it neither sends twice nor answers
 * the question that its first click asks.
 */
export const Button = ({ look, size, repeats, onClick, ...given }: ButtonProps) => (
  <button
    type="button"
    class="button"
    data-look={look}
    data-size={size}
    onClick={event => {
      if (event.detail > 1 && !repeats) event.preventDefault();
      else onClick?.(event);
    }}
    {...given}
  />
);
