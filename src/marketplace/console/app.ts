import type { Hono } from 'hono';
import { assembleConsole } from '../../operator-kit/console/app.ts';
import { auditPageOf } from '../../operator-kit/console/audit-page.ts';
import type { ConsoleEnv, ConsoleParts } from '../../operator-kit/console/deps.ts';
import type { Look } from '../../operator-kit/console/layout.ts';
import { operatorsPage } from '../../operator-kit/console/operators-page.ts';
import { operations } from '../operate/operations.ts';
import type { ConsoleDeps } from './deps.ts';
import { billPage, booksPage } from './pages/books.ts';
import { deploymentPage, deploymentsPage } from './pages/deployments.ts';
import { mailsPage } from './pages/mails.ts';
import { overviewPage } from './pages/overview.ts';
import { providersPage } from './pages/providers.ts';
import { monthPage, statementPage } from './pages/statements.ts';
import { teamPage, teamsPage } from './pages/teams.ts';
import { subjectLink } from './parts.ts';

const look: Look = {
  brand: 'Berth marketplace',
  tabs: [
    { path: '/console', name: 'Overview' },
    { path: '/console/providers', name: 'Providers' },
    { path: '/console/deployments', name: 'Deployments' },
    { path: '/console/teams', name: 'Teams' },
    { path: '/console/mails', name: 'Mails' },
    { path: '/console/books', name: 'Books' },
    { path: '/console/operators', name: 'Operators' },
    { path: '/console/audit', name: 'Audit' },
  ],
  search: {
    path: '/console/deployments',
    label: 'Find a deployment',
    placeholder: 'Find a deployment: id, name, address … (press /)',
  },
  command: 'berth marketplace operators',
};

/** Every page under `/console`, by path. */
export const pages: ConsoleParts<ConsoleDeps>['pages'] = [
  ['/', overviewPage],
  ['/providers', providersPage],
  ['/deployments', deploymentsPage],
  ['/deployments/:id', deploymentPage],
  ['/teams', teamsPage],
  ['/teams/:id', teamPage],
  ['/mails', mailsPage],
  ['/books', booksPage],
  ['/statements', monthPage],
  ['/statements/:id', statementPage],
  ['/bills', billPage],
  ['/bills/:id', billPage],
  ['/operators', operatorsPage],
  ['/audit', auditPageOf(subjectLink)],
];

/** The pages for the marketplace's operators, under `/console` of its admin listener. */
export function createConsole(deps: ConsoleDeps): Hono<ConsoleEnv> {
  return assembleConsole(deps, {
    look,
    pages,
    actions: operations,
    markTab: async ({ store: { read } }) => {
      const held = await read.losses.countHeld();
      return {
        path: '/console/providers',
        count: held.reduce((sum, one) => sum + one.count, 0),
        tone: 'bad',
      };
    },
  });
}
