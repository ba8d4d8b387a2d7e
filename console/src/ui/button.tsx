import type { ButtonHTMLAttributes } from 'preact';

type ButtonProps = ButtonHTMLAttributes & {
  look?: 'primary' | 'danger' | 'quiet';
  size?: 'small' | 'icon';
};

/** A button that sends nothing unless its type says so. */
export const Button = ({ look, size, ...given }: ButtonProps) => (
  <button type="button" class="button" data-look={look} data-size={size} {...given} />
);
