import type { Hono } from 'hono';
import { assembleConsole } from '../../operator-kit/console/app.ts';
import type { ConsoleEnv } from '../../operator-kit/console/deps.ts';
import type { Look } from '../../operator-kit/console/layout.ts';
import { operations } from '../operate/operations.ts';
import type { ConsoleDeps } from './deps.ts';
import { pages } from './pages/pages.ts';

const look: Look = {
  brand: 'Berth',
  tabs: [
    { path: '/console', name: 'Fleet' },
    { path: '/console/instances', name: 'Instances' },
    { path: '/console/alarms', name: 'Alarms' },
    { path: '/console/work', name: 'Work' },
    { path: '/console/capacity', name: 'Capacity' },
    { path: '/console/cordons', name: 'Cordons' },
    { path: '/console/platforms', name: 'Platforms' },
    { path: '/console/orphans', name: 'Orphans' },
    { path: '/console/accounts', name: 'Accounts' },
    { path: '/console/audit', name: 'Audit' },
  ],
  search: {
    path: '/console/instances',
    label: 'Find an instance',
    placeholder: 'Find an instance: id, name, address … (press /)',
  },
  command: 'berth operators',
};

/** The operator's pages, under `/console` of the admin listener. */
export function createConsole(deps: ConsoleDeps): Hono<ConsoleEnv> {
  return assembleConsole(deps, {
    look,
    pages,
    actions: operations,
    markTab: async ({ store }) => {
      const alarms = await store.read.alarms.list();
      const isNew = alarms.some(({ acknowledgedBy }) => acknowledgedBy === null);
      return { path: '/console/alarms', count: alarms.length, tone: isNew ? 'bad' : 'wait' };
    },
  });
}
