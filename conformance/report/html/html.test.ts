import { expect, it } from 'vitest';
import { greenReport, HOSTILE, sampleReport } from '../sample.fixture.ts';
import { toHtml } from './html.ts';
import { html } from './markup.ts';

const page = toHtml(sampleReport);

it('escapes whatever is put into a template, and what cannot be seen', () => {
  expect(html`<p title="${'"\'><'}">${['<b>', html`<i>`]}${HOSTILE.bidi}</p>`.text).toBe(
    '<p title="&quot;&#39;&gt;&lt;">&lt;b&gt;<i>safe\\u202egnp.exe\\u2066</p>',
  );
});

it('holds no script, and no element or attribute that could load or run anything', () => {
  expect(page).toContain('&lt;script&gt;');
  expect(page).not.toMatch(/<(script|img|iframe|link|object|embed|svg|form|base|video|audio)\b/i);
  const tags = page.match(/<[a-z][^>]*>/g) ?? [];
  expect(tags.filter((tag) => /\s(on\w+|src|href="(?!#)|srcset|action)/.test(tag))).toEqual([]);
  expect(page).not.toMatch(/url\(|@import/);
});

it('forbids by its policy all that it does not have', () => {
  expect(page.replaceAll('&#39;', "'")).toContain(
    `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'`,
  );
});

it('has a place for every check', () => {
  for (const { id } of sampleReport.checks) expect(page).toContain(`id="${id}"`);
});

it('closes what it opens', () => {
  for (const text of [page, toHtml(greenReport)])
    for (const tag of [
      'div',
      'section',
      'details',
      'table',
      'ul',
      'li',
      'p',
      'pre',
      'span',
      'tr',
      'td',
      'nav',
      'main',
    ]) {
      const opened = text.match(new RegExp(`<${tag}[ >]`, 'g'))?.length ?? 0;
      expect([tag, text.split(`</${tag}>`).length - 1]).toEqual([tag, opened]);
    }
});

it('is the same to the byte for the same report', () => {
  expect(toHtml(sampleReport)).toBe(page);
});

it('says what its signature proves, where it has one', () => {
  const signature = { algorithm: 'Ed25519', public_key: '', transcript_sha256: '', value: '' } as const;
  expect(page).not.toContain('signature proves');
  expect(toHtml({ ...greenReport, signature })).toContain(
    'What its signature proves: The holder of the key says so; only a run of your own cannot be invented.',
  );
});

it('begins with contents that lead to each heading, and folds what did not fail', () => {
  for (const text of [page, toHtml(greenReport)]) {
    const contents = /<nav class="contents"[\s\S]*?<\/nav>/.exec(text)?.[0] ?? '';
    const targets = [...contents.matchAll(/href="#([^"]+)"/g)].map(([, id]) => id);
    expect(targets).toEqual([...text.matchAll(/<h2 id="([^"]+)"/g)].map(([, id]) => id));
    for (const id of targets) expect(text.split(` id="${id}"`)).toHaveLength(2);
    expect(text).toMatch(/<details class="fold"><summary><h2 id="pass">/);
  }
  expect(page).toMatch(/<a href="#gaps">What to mend, in this order<\/a>[\s\S]*<a href="#warn">Warnings/);
  expect(toHtml(greenReport)).not.toContain('href="#gaps"');
});
