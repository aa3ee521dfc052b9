import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { chromiumLaunch, weakContrasts } from '../../../test/support/chromium.ts';
import { pages } from './app.ts';
import { startConsole, type TestConsole } from './console.fixture.ts';
import { putDemoFigures } from './demo-figures.fixture.ts';
import { FAILED, HOSTILE, putDemoFleet, STUCK } from './demo-fleet.fixture.ts';

let browser: Browser;
let shown: TestConsole;
let origin: string;

beforeAll(async () => {
  browser = await chromium.launch(chromiumLaunch);
  shown = await startConsole();
  await putDemoFleet(shown);
  await putDemoFigures(shown);
  origin = await shown.listen();
});

afterAll(async () => {
  await browser?.close();
  await shown?.[Symbol.asyncDispose]();
});

const paths = [
  '/console/actions/cordon?kind=offer&name=l40s-1x',
  ...pages.flatMap(([path]) =>
    path.endsWith(':id')
      ? [STUCK, FAILED].map((id) => `/console${path.replace(':id', id)}`)
      : [`/console${path === '/' ? '' : path.replace(':platform', 'default')}`],
  ),
];

/** A tab with a logged-in operator. `complaints` collects console messages, errors, dialogs and foreign requests. */
async function open(options: BrowserContextOptions = {}) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('console', (message) => complaints.push(message.text()));
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('dialog', (dialog) => complaints.push(dialog.message()));
  page.on('request', (request) => {
    if (!/^data:/.test(request.url()) && !request.url().startsWith(origin)) complaints.push(request.url());
  });
  await page.goto(`${origin}/console/instances?status=ERROR`);
  await page.fill('input[name=key]', shown.key);
  await page.keyboard.press('Enter');
  await page.waitForSelector('main table');
  return { page, complaints, [Symbol.asyncDispose]: () => context.close() };
}

const isLive = (page: Page) => page.waitForSelector('.live[data-state=on]');

it('asks for the key, and then shows the page that was asked for', async () => {
  await using opened = await open();
  expect(new URL(opened.page.url()).search).toBe('?status=ERROR');
  expect(opened.complaints).toEqual([]);
});

it('finds an instance by its name, with the keyboard alone, and says why it is stuck and what to do', async () => {
  await using opened = await open();
  const { page } = opened;
  await page.keyboard.press('/');
  await page.keyboard.type('train-large');
  await page.keyboard.press('Enter');
  await page.click(`a[href="/console/instances/${STUCK}"]`);
  await page.waitForSelector('.notice.bad >> text=Stuck at “verify”');
  expect(await page.textContent('.notice ol')).toContain('check cloud-init');
  expect(opened.complaints).toEqual([]);
});

it('leads from the fleet to the stuck instance with one click', async () => {
  await using opened = await open();
  const { page } = opened;
  await page.goto(`${origin}/console`);
  await page.click(`#wrong a[href="/console/instances/${STUCK}"]`);
  await page.waitForSelector('.notice.bad');
});

it('shows on its first page how full it was this week and what it earned, without scrolling', async () => {
  await using opened = await open({ viewport: { width: 1280, height: 800 } });
  const { page, complaints } = opened;
  await page.goto(`${origin}/console`);
  await isLive(page);
  for (const name of ['units', 'earned']) {
    const box = await page.locator(`#figure-${name} svg`).boundingBox();
    expect([name, (box?.y ?? 800) + (box?.height ?? 0) <= 800, (box?.height ?? 0) > 100]).toEqual([
      name,
      true,
      true,
    ]);
  }
  expect(await page.textContent('#figure-units h2')).toMatch(/^Units, 7 days: \d+ % sold on average$/);
  await page.getByText('Numbers').first().click();
  // The last hour of a day completes seven days.
  expect([7, 8]).toContain(await page.locator('#figure-units tbody tr').count());
  expect(complaints).toEqual([]);
});

it('acknowledges an alarm by a click', async () => {
  await using opened = await open();
  const { page } = opened;
  await page.click('nav >> text=Alarms');
  const row = page.locator('tr', { hasText: 'platform_down' });
  await row.getByRole('button', { name: 'Acknowledge' }).click();
  await row.getByText('mara').waitFor();
  const alarms = await shown.store.read.alarms.list();
  expect(alarms.find(({ kind }) => kind === 'platform_down')?.acknowledgedBy).toBe('mara');
});

it('shows changes without a reload, and keeps opened sections and typed text', async () => {
  await using opened = await open();
  const { page, complaints } = opened;
  await page.goto(`${origin}/console/instances?q=notebook-10`);
  await isLive(page);
  await page.evaluate('window.isSamePage = true');
  await page.fill('input[name=q] >> nth=1', 'half typed');
  await page.locator('#instances').getByText('STOPPED', { exact: true }).waitFor();
  const [found] = await shown.store.read.instances.search({ text: 'notebook-10', order: 'newest', limit: 1 });
  if (found === undefined) throw new Error('it is there');
  await shown.store.transact((tx) =>
    tx.instances.update({ ...found, status: 'ONLINE', name: `${HOSTILE} notebook-10` }),
  );
  await page.locator('#instances').getByText('ONLINE', { exact: true }).waitFor();
  await page.locator('#instances').getByText(HOSTILE, { exact: false }).waitFor();
  expect(await page.inputValue('input[name=q] >> nth=1')).toBe('half typed');
  expect(await page.evaluate('window.isSamePage')).toBe(true);
  expect(complaints).toEqual([]);
});

it('cordons an offer: first as a dry run, then for good', async () => {
  await using opened = await open();
  const { page, complaints } = opened;
  await page.goto(`${origin}/console/cordons`);
  await page.fill('#cordon input[name=name]', 'l40s-1x');
  await page.selectOption('#cordon select[name=kind]', 'offer');
  await page.getByRole('button', { name: 'Cordon it …' }).click();
  await page.getByText('This is a dry run: nothing has changed.').waitFor();
  expect(await shown.store.read.cordons.list()).toEqual([]);
  await page.getByRole('button', { name: 'Cordon it' }).click();
  await page.locator('#cordons').getByText('l40s-1x').waitFor();
  await page.getByRole('button', { name: 'Remove cordon' }).click();
  await page.getByText('Nothing is cordoned.').waitFor();
  expect(await shown.store.read.cordons.list()).toEqual([]);
  expect(complaints).toEqual([]);
});

it('asks for the key again when the session has ended', async () => {
  await using opened = await open();
  const { page } = opened;
  await page.click('text=Sign out');
  await page.waitForSelector('input[name=key]');
  await page.goto(`${origin}/console/work`);
  expect(new URL(page.url()).pathname).toBe('/console/login');
});

it.each([320, 380, 1280])('fits the width of %s on every page, without console errors', async (width) => {
  await using opened = await open({ viewport: { width, height: 800 } });
  const { page, complaints } = opened;
  for (const path of paths) {
    await page.goto(`${origin}${path}`);
    await isLive(page);
    const content = await page.evaluate<number>('document.documentElement.scrollWidth');
    expect([path, content]).toEqual([path, width]);
  }
  expect(complaints).toEqual([]);
});

it.each(['light', 'dark'] as const)(
  'has text that stands out from what is behind it, in the %s',
  async (colorScheme) => {
    await using opened = await open({ colorScheme });
    const { page } = opened;
    for (const path of paths) {
      await page.goto(`${origin}${path}`);
      expect([path, await page.evaluate(weakContrasts)]).toEqual([path, []]);
    }
  },
);
