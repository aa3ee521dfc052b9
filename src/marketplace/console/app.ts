import type { Hono } from 'hono';
import { alarmRoutesView } from '../../operator-kit/alarms/operations.ts';
import { assembleConsole } from '../../operator-kit/console/app.ts';
import type { ConsoleEnv, ConsoleParts } from '../../operator-kit/console/deps.ts';
import type { Look } from '../../operator-kit/console/layout.ts';
import { belowAlarms, type PageExtras, viewPage } from '../../operator-kit/console/view-pages.ts';
import type { Operation } from '../../operator-kit/operation.ts';
import { auditView } from '../../operator-kit/views/audit.ts';
import { alarmsView, endedAlarmsView } from '../operate/alarms.ts';
import { listStockAlerts } from '../operate/commands.ts';
import { operations, operatorKeys } from '../operate/operations.ts';
import { listKeys, listUsers } from '../operate/people.ts';
import { salesPausesView } from '../operate/sales.ts';
import { listDiscounts } from '../operate/teams.ts';
import { booksView } from '../operate/views/books.ts';
import { deploymentsView } from '../operate/views/deployments.ts';
import { lossesView } from '../operate/views/losses.ts';
import { mailsView } from '../operate/views/mails.ts';
import { providersView } from '../operate/views/providers.ts';
import { teamsView, teamView } from '../operate/views/teams.ts';
import { timeline } from '../operate/views/timeline.ts';
import type { ConsoleDeps } from './deps.ts';
import { billPage } from './pages/bill.ts';
import { billForm, verdictSection } from './pages/books.ts';
import { deploymentPage } from './pages/deployment.ts';
import { figuresOfProviders, figuresOfTeam } from './pages/figures.ts';
import { overviewPage } from './pages/overview.ts';
import { monthPage, statementPage } from './pages/statements.ts';

const look: Look = {
  brand: 'Berth marketplace',
  tabs: [
    { path: '/console', name: 'Overview' },
    { path: '/console/alarms', name: 'Alarms' },
    { path: '/console/timeline', name: 'Timeline' },
    { path: '/console/providers', name: 'Providers' },
    { path: '/console/sales-pauses', name: 'Sales' },
    { path: '/console/losses', name: 'Losses' },
    { path: '/console/deployments', name: 'Deployments' },
    { path: '/console/teams', name: 'Teams' },
    { path: '/console/users', name: 'Users' },
    { path: '/console/keys', name: 'Keys' },
    { path: '/console/discounts', name: 'Discounts' },
    { path: '/console/stock-alerts', name: 'Stock alerts' },
    { path: '/console/mails', name: 'Mails' },
    { path: '/console/books', name: 'Books' },
    { path: '/console/operator-keys', name: 'Operators' },
    { path: '/console/audit', name: 'Audit' },
  ],
  search: {
    path: '/console/deployments',
    label: 'Find a deployment',
    placeholder: 'Find a deployment: id, name, address … (press /)',
  },
  command: 'berth marketplace operators',
};

const page = (view: Operation<ConsoleDeps>, extras?: PageExtras<ConsoleDeps>) =>
  viewPage(view, operations, extras);

/** Every page under `/console`, by path. */
export const pages: ConsoleParts<ConsoleDeps>['pages'] = [
  ['/', overviewPage],
  page(alarmsView, { below: belowAlarms }),
  page(endedAlarmsView),
  page(alarmRoutesView),
  page(timeline),
  page(providersView, { below: figuresOfProviders }),
  page(salesPausesView),
  page(lossesView),
  page(deploymentsView, {
    choices: async ({ providers }) => ({ provider: [...providers().keys()].map((id) => [id, id] as const) }),
  }),
  ['/deployments/:id', deploymentPage],
  page(teamsView, {
    choices: async () => ({
      spending: [
        ['true', 'billed now'],
        ['false', 'all'],
      ],
    }),
  }),
  page(teamView, { below: figuresOfTeam }),
  page(listUsers),
  page(listKeys),
  page(listDiscounts),
  page(listStockAlerts),
  page(mailsView),
  page(booksView, { above: verdictSection, below: billForm }),
  ['/statements', monthPage],
  ['/statements/:id', statementPage],
  ['/bills', billPage],
  ['/bills/:id', billPage],
  page(operatorKeys),
  page(auditView),
];

/** The pages for the marketplace's operators, under `/console` of its admin listener. */
export function createConsole(deps: ConsoleDeps): Hono<ConsoleEnv> {
  return assembleConsole(deps, {
    look,
    pages,
    actions: operations,
    markTab: async ({ store: { read } }) => {
      const open = await read.alarms.list();
      const isNew = open.some(({ acknowledgedBy }) => acknowledgedBy === null);
      return { path: '/console/alarms', count: open.length, tone: isNew ? 'bad' : 'wait' };
    },
  });
}
