import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { type BrowserContextOptions, chromium } from 'playwright-core';
import { startMarketConsole } from '../src/marketplace/console/console.fixture.ts';
import { putDemoMarket, TRAINING } from '../src/marketplace/console/demo-market.fixture.ts';
import { startConsole } from '../src/orchestrator/console/console.fixture.ts';
import { putDemoFigures } from '../src/orchestrator/console/demo-figures.fixture.ts';
import { FAILED, putDemoFleet, STUCK } from '../src/orchestrator/console/demo-fleet.fixture.ts';
import { chromiumLaunch } from './support/chromium.ts';

// Draws every page of both consoles into docs/console/ (`npm run generate -- screenshots`), of a fleet and a marketplace that are
// made up. With `--all` also in the dark and as wide as a phone, into the folder that `--into` names.

const { values } = parseArgs({
  options: { into: { type: 'string', default: 'docs/console' }, all: { type: 'boolean', default: false } },
});

type Shots = readonly (readonly [name: string, path: string])[];

const shots: Shots = [
  ['fleet', '/console'],
  ['instances', '/console/instances'],
  ['instance-stuck', `/console/instances/${STUCK}`],
  ['instance-failed', `/console/instances/${FAILED}`],
  ['alarms', '/console/alarms'],
  ['work', '/console/work'],
  ['capacity', '/console/capacity'],
  ['cordons', '/console/cordons?kind=offer&name=l40s-1x'],
  ['confirm', `/console/actions/destroyInstance?instanceId=${STUCK}`],
  ['platforms', '/console/platforms'],
  ['orphans', '/console/orphans'],
  ['accounts', '/console/accounts'],
  ['audit', '/console/audit'],
];
const marketShots: Shots = [
  ['market-overview', '/console'],
  ['market-providers', '/console/providers'],
  ['market-deployments', '/console/deployments'],
  ['market-deployment', `/console/deployments/${TRAINING.id}`],
  ['market-teams', '/console/teams'],
  ['market-team', `/console/teams/${TRAINING.teamId}`],
  ['market-mails', '/console/mails'],
  ['market-books', '/console/books'],
  ['market-bill', `/console/bills/${TRAINING.id}`],
  ['market-operators', '/console/operator-keys'],
  ['market-audit', '/console/audit'],
];

const looks: Record<string, BrowserContextOptions> = {
  '': { viewport: { width: 1000, height: 640 } },
  ...(values.all && {
    '-dark': { viewport: { width: 1000, height: 640 }, colorScheme: 'dark' },
    '-phone': { viewport: { width: 380, height: 800 } },
  }),
};

mkdirSync(values.into, { recursive: true });
const browser = await chromium.launch(chromiumLaunch);
{
  await using shown = await startConsole();
  await putDemoFleet(shown);
  await putDemoFigures(shown);
  await draw({ origin: await shown.listen(), key: shown.key }, 'login', shots);
}
{
  await using shown = await startMarketConsole();
  await putDemoMarket(shown);
  await draw({ origin: await shown.listen(), key: shown.key }, 'market-login', marketShots);
}
await browser.close();

async function draw(
  { origin, key }: { origin: string; key: string },
  login: string,
  wanted: Shots,
): Promise<void> {
  for (const [look, options] of Object.entries(looks)) {
    const context = await browser.newContext(options);
    const page = await context.newPage();
    await page.goto(`${origin}/console/login`);
    if (look === '' || values.all) await page.screenshot({ path: join(values.into, `${login}${look}.png`) });
    await page.fill('input[name=key]', key);
    await page.click('button.primary');
    for (const [name, path] of wanted) {
      await page.goto(`${origin}${path}`);
      await page.waitForSelector('.live[data-state=on]');
      // The doctor has not looked yet.
      if (name === 'doctor') await page.click('text=Look now');
      await page.screenshot({ path: join(values.into, `${name}${look}.png`), fullPage: values.all });
    }
    await context.close();
  }
}
