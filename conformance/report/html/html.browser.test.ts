import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { chromiumLaunch, weakContrasts } from '../../../test/support/chromium.ts';
import type { Report } from '../report.ts';
import { greenReport, sampleReport } from '../sample.fixture.ts';
import { toHtml } from './html.ts';

const folder = mkdtempSync(join(tmpdir(), 'berth-report-'));
let browser: Browser;

beforeAll(async () => {
  browser = await chromium.launch(chromiumLaunch);
  process.stderr.write(`The screenshots are in ${folder}\n`);
});

afterAll(async () => {
  await browser?.close();
});

interface Opened extends AsyncDisposable {
  page: Page;
  /** The requests of the page in addition to itself. */
  requests: string[];
  /** The browser's error messages, which include blocked scripts. */
  complaints: string[];
}

async function open(report: Report, options: BrowserContextOptions = {}): Promise<Opened> {
  const file = join(folder, `${report.outcome}.html`);
  writeFileSync(file, toHtml(report));
  const url = pathToFileURL(file).href;
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const requests: string[] = [];
  const complaints: string[] = [];
  page.on('request', (request) => {
    if (request.url() !== url) requests.push(request.url());
  });
  page.on('console', (message) => complaints.push(message.text()));
  page.on('dialog', (dialog) => complaints.push(dialog.message()));
  page.on('pageerror', (error) => complaints.push(error.message));
  await page.goto(url);
  return { page, requests, complaints, [Symbol.asyncDispose]: () => context.close() };
}

it('runs nothing and asks for nothing of what a target put into its answers', async () => {
  await using opened = await open(sampleReport);
  const { page, requests, complaints } = opened;
  await openAll(page);
  await page.waitForLoadState('networkidle');
  expect(await page.title()).toBe('NON-CONFORMANT: https://api.north-compute.example/v1');
  expect(await page.locator('script, img, iframe, link, object').count()).toBe(0);
  expect(requests).toEqual([]);
  expect(complaints).toEqual([]);
});

it('says the outcome, the tiers and every section in a heading', async () => {
  await using opened = await open(sampleReport);
  const { page } = opened;
  expect(await page.locator('h1').allInnerTexts()).toEqual(['NON-CONFORMANT']);
  expect(await page.locator('h2').allInnerTexts()).toEqual([
    '2 resources may still be running and billing',
    'What to mend, in this order',
    'The tiers of the contract',
    'Features',
    'Failed 5',
    'Warnings 1',
    'Not tested 2',
    'Not applicable 3',
    'Passed 7',
    'Not selected 1',
    'Excluded 2',
    'What it cost',
    'How it was made',
  ]);
});

it('has open what failed, and closed what passed', async () => {
  await using opened = await open(sampleReport);
  const { page } = opened;
  expect(await page.locator('details.check.fail:not([open])').count()).toBe(0);
  expect(await page.locator('details.check.fail[open]').count()).toBe(5);
  expect(await page.locator('details.check.pass[open]').count()).toBe(0);
  await page.locator('#INS-404-001 details.exchange >> nth=0').click();
  await expectVisible(page, '#INS-404-001 pre >> text=/curl .*Bearer \\$BERTH_API_KEY/');
  await expectVisible(page, '#INS-404-001 tr.here >> nth=0');
});

it('opens a check that passed when its link is followed', async () => {
  await using opened = await open(sampleReport);
  const { page } = opened;
  const body = page.locator('#WIRE-JSON-001');
  expect(await body.isVisible()).toBe(false);
  await page.goto(`${page.url()}#WIRE-JSON-001`);
  await body.waitFor({ state: 'visible', timeout: 2000 });
});

it.each([
  ['a telephone', 380],
  ['a narrow telephone', 320],
  ['a desk', 1280],
])('fits the width of %s, with everything open', async (_, width) => {
  await using opened = await open(sampleReport, { viewport: { width, height: 800 } });
  const { page } = opened;
  await openAll(page);
  const content = await page.evaluate<number>('document.documentElement.scrollWidth');
  expect(content).toBeLessThanOrEqual(width);
});

it.each(['light', 'dark'] as const)(
  'has text that stands out from what is behind it, in the %s',
  async (colorScheme) => {
    await using opened = await open(sampleReport, { colorScheme });
    const { page } = opened;
    const weak = await page.evaluate(weakContrasts);
    expect(weak).toEqual([]);
  },
);

it.each([
  ['failed', sampleReport],
  ['passed', greenReport],
])('is drawn for a person to look at: a run that %s', async (name, report) => {
  for (const [kind, options] of [
    ['light', { viewport: { width: 1100, height: 900 } }],
    ['dark', { viewport: { width: 1100, height: 900 }, colorScheme: 'dark' }],
    ['phone', { viewport: { width: 380, height: 800 } }],
  ] as const) {
    await using opened = await open(report, options);
    const picture = await opened.page.screenshot({
      fullPage: true,
      path: join(folder, `${name}-${kind}.png`),
    });
    expect(picture.length).toBeGreaterThan(20_000);
  }
  await using opened = await open(report);
  const printed = await opened.page.pdf({ format: 'A4', path: join(folder, `${name}.pdf`) });
  expect(printed.subarray(0, 5).toString()).toBe('%PDF-');
});

async function expectVisible(page: Page, selector: string): Promise<void> {
  expect([selector, await page.locator(selector).first().isVisible()]).toEqual([selector, true]);
}

async function openAll(page: Page): Promise<void> {
  await page.evaluate('for (const details of document.querySelectorAll("details")) details.open = true');
}
