import { useEffect, useState } from 'preact/hooks';
import { Button } from './button.tsx';
import { MoonIcon, SunIcon } from './icons.tsx';

const KEY = 'windlass.theme';
type Theme = 'light' | 'dark';

function readTheme(): Theme | undefined {
  try {
    const kept = localStorage.getItem(KEY);
    return kept === 'light' || kept === 'dark' ? kept : undefined;
  } catch {
    return undefined;
  }
}

/** What the user chose here before; else the system's. */
export function applyTheme(theme = readTheme()): void {
  if (theme) document.documentElement.dataset.theme = theme;
}

const isDark = matchMedia('(prefers-color-scheme: dark)');
const systemTheme = (): Theme => (isDark.matches ? 'dark' : 'light');

export function ThemeButton() {
  const [theme, setTheme] = useState<Theme>(() => readTheme() ?? systemTheme());
  useEffect(() => {
    const follow = () => setTheme(readTheme() ?? systemTheme());
    isDark.addEventListener('change', follow);
    return () => isDark.removeEventListener('change', follow);
  }, []);
  const other = theme === 'dark' ? 'light' : 'dark';
  const change = () => {
    applyTheme(other);
    setTheme(other);
    try {
      localStorage.setItem(KEY, other);
    } catch {
      // It is chosen for this page alone.
    }
  };
  const label = `Use the ${other} theme`;
  return (
    <Button look="quiet" size="icon" aria-label={label} title={label} repeats onClick={change}>
      {theme === 'dark' ? <SunIcon /> : <MoonIcon />}
    </Button>
  );
}
