import { readFileSync } from 'node:fs';
import { afterAll, expect, it } from 'vitest';
import { expectVerdict, flood, offer, quickIn, refuse } from './bad-input.fixture.ts';
import { API_KEY, sendJson, temporaryFolder } from './cli.fixture.ts';

const folder = temporaryFolder();
afterAll(() => folder[Symbol.dispose]());

const quick = quickIn(folder.path);

it('a target that streams without end', async () => {
  await expectVerdict(quick, (_request, response) => flood(response));
});

it('a target that puts ANSI codes, HTML and a million instances into its answers', async () => {
  const evil = `\u001b[31m\u202e<script>alert('${API_KEY}')</script>\u0000`;
  const offers = [{ ...offer, id: evil, name: evil, regions: [evil] }];
  const instances = Buffer.from(
    `{"instances":[${Array.from({ length: 1_000_000 }, (_, n) => `{"id":"${n}","name":"n"}`).join(',')}]}`,
  );
  const html = folder.file('r.html');
  const result = await expectVerdict(
    quick,
    ({ method, url }, response) => {
      if (method !== 'GET') refuse(response);
      else if (url?.startsWith('/v1/instances'))
        response.writeHead(200, { 'content-type': 'application/json', 'x-evil': '<b>' }).end(instances);
      else sendJson(response, 200, { configurations: offers });
    },
    ['--html', html, '--json', folder.file('r.json'), '--junit', folder.file('r.xml')],
  );
  expect(result.out).not.toContain('<script>alert(\u001b');
  for (const name of ['r.html', 'r.json', 'r.xml']) {
    const text = readFileSync(folder.file(name), 'utf8');
    expect(text).not.toContain(API_KEY);
    expect(text.length).toBeLessThan(8_000_000);
  }
  expect(readFileSync(html, 'utf8')).not.toContain('<script>alert');
});
