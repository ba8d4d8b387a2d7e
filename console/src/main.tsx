import './styles/tokens.css';
import './styles/base.css';
import './styles/layout.css';
import './styles/controls.css';
import './styles/feedback.css';
import './styles/log.css';
import './styles/run.css';
import './styles/jobs.css';
import { render } from 'preact';
import { App } from './app.tsx';
import { applyTheme } from './ui/theme.tsx';

applyTheme();
const root = document.querySelector('#console');
if (root) render(<App />, root);
