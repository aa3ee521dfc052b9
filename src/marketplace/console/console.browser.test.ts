import { type Browser, type BrowserContextOptions, chromium } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { chromiumLaunch, weakContrasts } from '../../../test/support/chromium.ts';
import { pages } from './app.ts';
import { startMarketConsole, type TestMarketConsole } from './console.fixture.ts';
import { putDemoMarket, TRAINING } from './demo-market.fixture.ts';

let browser: Browser;
let shown: TestMarketConsole;
let origin: string;

beforeAll(async () => {
  browser = await chromium.launch(chromiumLaunch);
  shown = await startMarketConsole();
  await putDemoMarket(shown);
  origin = await shown.listen();
});

afterAll(async () => {
  await browser?.close();
  await shown?.[Symbol.asyncDispose]();
});

const paths = pages.map(([path]) => {
  if (path === '/bills') return `/console/bills?id=${TRAINING.id}`;
  const id = /^\/(teams|statements)\//.test(path) ? TRAINING.teamId : TRAINING.id;
  return `/console${path === '/' ? '' : path.replace(/:\w+/, id)}`;
});

/** A tab with a logged-in operator. `complaints` collects the browser's errors and its requests to other hosts. */
async function open(options: BrowserContextOptions = {}) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('console', (message) => complaints.push(message.text()));
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('request', (request) => {
    if (!/^data:/.test(request.url()) && !request.url().startsWith(origin)) complaints.push(request.url());
  });
  await page.goto(`${origin}/console`);
  await page.fill('input[name=key]', shown.key);
  await page.keyboard.press('Enter');
  await page.waitForSelector('.live[data-state=on]');
  return { page, complaints, [Symbol.asyncDispose]: () => context.close() };
}

it('finds a deployment by keyboard alone, and links to its team, its cost and its bill', async () => {
  await using opened = await open();
  const { page, complaints } = opened;
  await page.keyboard.press('/');
  await page.keyboard.type(TRAINING.name);
  await page.keyboard.press('Enter');
  await page.click(`a[href="/console/deployments/${TRAINING.id}"]`);
  await page.click(`#what a[href="/console/teams/${TRAINING.teamId}"]`);
  expect(await page.textContent('#facts')).toMatch(/Cost per hour, before discounts\s*\$\d/);
  await page.click(`#pays_for a[href="/console/bills/${TRAINING.id}"]`);
  await page.getByRole('heading', { name: `Bill of ${TRAINING.id}` }).waitFor();
  expect(await page.textContent('#rates')).toContain('$18.40');
  expect(complaints).toEqual([]);
});

it('explains the bill of a typed id', async () => {
  await using opened = await open();
  const { page } = opened;
  await page.click('nav >> text=Books');
  await page.fill('input[name=id]', TRAINING.id);
  await page.getByRole('button', { name: 'Explain' }).click();
  await page.getByRole('heading', { name: `Bill of ${TRAINING.id}` }).waitFor();
});

it('retries a given-up mail on a click', async () => {
  await using opened = await open();
  const { page, complaints } = opened;
  await page.goto(`${origin}/console/mails?state=given_up`);
  await page.getByRole('button', { name: 'Try now' }).click();
  await page.locator('#mails').getByText('550 5.1.1').waitFor();
  expect(new URL(page.url()).search).toBe('?state=waiting');
  expect(complaints).toEqual([]);
});

it.each([320, 380, 1280])('fits the width of %s on every page, without console errors', async (width) => {
  await using opened = await open({ viewport: { width, height: 800 } });
  const { page, complaints } = opened;
  for (const path of paths) {
    await page.goto(`${origin}${path}`);
    await page.waitForSelector('.live[data-state=on]');
    const content = await page.evaluate<number>('document.documentElement.scrollWidth');
    expect([path, content]).toEqual([path, width]);
  }
  expect(complaints).toEqual([]);
});

it.each(['light', 'dark'] as const)('has enough text contrast, in the %s', async (colorScheme) => {
  await using opened = await open({ colorScheme });
  const { page } = opened;
  for (const path of paths) {
    await page.goto(`${origin}${path}`);
    expect([path, await page.evaluate(weakContrasts)]).toEqual([path, []]);
  }
});
