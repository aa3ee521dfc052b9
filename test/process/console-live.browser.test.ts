import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { chromiumLaunch } from '../support/chromium.ts';
import { startRelay } from '../support/http/relay.ts';
import { BerthProcess, runBerth, temporaryFolder, writeFastConfig } from '../support/processes/process.ts';

let browser: Browser;
beforeAll(async () => {
  browser = await chromium.launch(chromiumLaunch);
});
afterAll(() => browser?.close());

const orchestrator = {
  serve: ['serve'],
  operators: ['operators'],
  path: '/console/accounts',
  writeConfig: (folder: string) => writeFastConfig(folder),
};
const marketplace = {
  serve: ['marketplace'],
  operators: ['marketplace', 'operators'],
  path: '/console/operator-keys',
  writeConfig: (folder: string) => {
    const file = join(folder, 'marketplace.yaml');
    const provider =
      '{ id: provider-d, base_url: "http://127.0.0.1:9/v1", api_key_env: KEY_D, allow_private: true }';
    writeFileSync(file, `database: sqlite:marketplace.db\nlog_level: warn\nproviders: [${provider}]\n`);
    return file;
  },
};

/** A server of its own behind a relay, so that it has one origin over its lives, and a tab in which an operator is logged in. */
async function open({ serve, operators, path, writeConfig }: typeof orchestrator) {
  const stack = new AsyncDisposableStack();
  const folder = stack.use(temporaryFolder());
  const config = ['--config', writeConfig(folder.path)];
  const relay = stack.use(await startRelay());
  const start = async () => {
    const args = [...serve, '--port', '0', '--admin-port', '0', '--json', ...config];
    const berth = stack.use(new BerthProcess(args, { env: { KEY_D: 'x' } }));
    const line = await berth.waitForOutput((stdout) => /^\{.*\}$/m.exec(stdout)?.[0]);
    const adminUrl = String(JSON.parse(line).admin_url);
    relay.lead(adminUrl);
    return { berth, adminUrl };
  };
  const addOperator = async (name: string): Promise<string> => {
    const { stdout } = await runBerth([...operators, 'create', name, '--json', ...config]);
    return String(JSON.parse(stdout).operator_key);
  };
  const { berth, adminUrl } = await start();
  const key = await addOperator('mara');
  const context = await browser.newContext();
  stack.defer(() => context.close());
  const page = await context.newPage();
  await page.clock.install();
  await page.goto(`${relay.origin}${path}`);
  await page.fill('input[name=key]', key);
  await page.keyboard.press('Enter');
  await isLive(page);
  return {
    berth,
    adminUrl,
    relay,
    page,
    start,
    addOperator,
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

const isLive = (page: Page) => page.waitForSelector('.live[data-state=on]');
const isOff = (page: Page) => page.waitForSelector('.live[data-state=off]');
const ages = (page: Page) => page.locator('time[data-ago]').allTextContents();
/** Longer than the pauses between what a server sends. */
const SILENT_MS = 26_000;
/** Longer than any pause between two tries. */
const NEXT_TRY_MS = 2_000;

describe.each([
  ['the orchestrator', orchestrator],
  ['the marketplace', marketplace],
])('the console of %s', (_name, product) => {
  it.each(['SIGTERM', 'SIGKILL'] as const)(
    'says "off" at once after %s, keeps the page at a click, lets nothing age, and is live again after the next start [console-off]',
    async (signal) => {
      await using opened = await open(product);
      const { berth, page } = opened;
      expect(await page.textContent('.live')).toBe('live');
      await berth.end(signal);
      await isOff(page);
      const banner = page.getByRole('alert');
      expect(await banner.textContent()).toMatch(/^Off: no connection. This page was read at [\d:]{8} UTC/);
      await page.click('nav a >> nth=1');
      await banner.getByText('Your click did nothing').waitFor();
      await page.getByRole('button', { name: 'Sign out' }).click();
      expect(new URL(page.url()).pathname).toBe(product.path);
      await page.setViewportSize({ width: 320, height: 600 });
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(320);
      const before = await ages(page);
      await page.clock.fastForward(3 * 3_600_000);
      expect(before).not.toEqual([]);
      expect(await ages(page)).toEqual(before);
      await opened.start();
      await page.clock.fastForward(NEXT_TRY_MS);
      await isLive(page);
      expect(await banner.isVisible()).toBe(false);
      expect(new URL(page.url()).pathname).toBe(product.path);
      await page.click('nav a >> nth=1');
      await isLive(page);
      expect(new URL(page.url()).pathname).not.toBe(product.path);
    },
  );

  it('loads what it missed while it had no connection, or a server that was silent [console-missed]', async () => {
    await using opened = await open(product);
    const { page, relay } = opened;
    relay.lead(null);
    await isOff(page);
    await opened.addOperator('while-cut');
    expect(await page.textContent('main')).not.toContain('while-cut');
    relay.lead(opened.adminUrl);
    await page.clock.fastForward(NEXT_TRY_MS);
    await isLive(page);
    expect(await page.textContent('main')).toContain('while-cut');

    relay.hang(true);
    await page.clock.fastForward(SILENT_MS);
    await page.getByText('Off: the server is silent').waitFor();
    await opened.addOperator('while-silent');
    relay.hang(false);
    await page.clock.fastForward(NEXT_TRY_MS);
    await isLive(page);
    expect(await page.textContent('main')).toContain('while-silent');
  });
});
