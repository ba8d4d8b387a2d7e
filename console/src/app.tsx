import { focusManager, QueryClientProvider } from '@tanstack/preact-query';
import { useEffect, useRef } from 'preact/hooks';
import { Redirect, Route, Router, Switch } from 'wouter-preact';
import { JobPage } from './pages/job.tsx';
import { JobsPage } from './pages/jobs.tsx';
import { Missing } from './pages/missing.tsx';
import { RunPage } from './pages/run.tsx';
import { SignIn, SignInAgain } from './pages/sign-in.tsx';
import { queries } from './service/client.ts';
import { CONSOLE_PATH } from './service/place.ts';
import { type CurrentUser, useUser, waitsForUser } from './service/user.ts';
import { Connection } from './ui/connection.tsx';
import { lazy } from './ui/lazy.tsx';
import { Problem } from './ui/problem.tsx';
import { Shell } from './ui/shell.tsx';
import { Wait } from './ui/wait.tsx';

const AccountPage = lazy(async () => (await import('./pages/account.tsx')).AccountPage);
const FilesPage = lazy(async () => (await import('./pages/files.tsx')).FilesPage);
const ProjectsPage = lazy(async () => (await import('./pages/projects.tsx')).ProjectsPage);
const ProjectPage = lazy(async () => (await import('./pages/project.tsx')).ProjectPage);
const ModelPage = lazy(async () => (await import('./pages/model.tsx')).ModelPage);
const OperatePage = lazy(async () => (await import('./pages/operate.tsx')).OperatePage);

export const App = () => (
  <QueryClientProvider client={queries}>
    <Router base={CONSOLE_PATH}>
      <Content />
      <Connection />
    </Router>
  </QueryClientProvider>
);

/**
 * Without a login every address shows the login page, and then what it names. Where a login ends while a page is used,
 * the page stays hidden behind it, with all that was typed, for the same user only.
 */
function Content() {
  const { data: user, error } = useUser();
  const last = useRef<CurrentUser>();
  if (user) last.current = user;
  if (user === null && !waitsForUser()) last.current = undefined;
  const isOut = user === null;
  useEffect(() => {
    // As for a hidden page: nothing is polled.
    focusManager.setFocused(isOut ? false : undefined);
    if (!isOut)
      void queries.invalidateQueries({ predicate: ({ state }) => state.status === 'error' });
  }, [isOut]);
  const shown = last.current;
  if (shown)
    return (
      <>
        {isOut && <SignInAgain username={shown.username} />}
        <div key={shown.username} hidden={isOut}>
          <Pages user={shown} />
        </div>
      </>
    );
  if (isOut) return <SignIn />;
  return (
    <main class="main">
      {error ? (
        <Problem error={error} />
      ) : (
        <>
          <h1 class="visually-hidden">Windlass</h1>
          <Wait>Asking the service who you are …</Wait>
        </>
      )}
    </main>
  );
}

function Pages({ user }: { user: CurrentUser }) {
  return (
    <Shell user={user}>
      <Switch>
        <Route path="/">
          <Redirect to="/run" replace />
        </Route>
        <Route path="/run">
          <RunPage user={user} />
        </Route>
        <Route path="/jobs">
          <JobsPage user={user} />
        </Route>
        <Route path="/files">
          <FilesPage user={user} />
        </Route>
        <Route path="/projects">
          <ProjectsPage />
        </Route>
        <Route path="/projects/:pid/models/:mid/:part?">
          {({ pid, mid, part = '' }) => <ModelPage key={mid} pid={pid} mid={mid} part={part} />}
        </Route>
        <Route path="/projects/:pid/:part?">
          {({ pid, part = '' }) => <ProjectPage key={pid} user={user} pid={pid} part={part} />}
        </Route>
        <Route path="/operate/:part?">
          {({ part = '' }) => <OperatePage user={user} part={part} />}
        </Route>
        <Route path="/account/:part?">
          {({ part = '' }) => <AccountPage user={user} part={part} />}
        </Route>
        <Route path="/jobs/:id">{({ id }) => <JobPage key={id} id={id} user={user} />}</Route>
        <Route>
          <Missing />
        </Route>
      </Switch>
    </Shell>
  );
}
