import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { marketplaceConfigSchema } from '../../src/config/marketplace/schema.ts';
import { commandsOf, readPage, root, shellBlocksOf } from './pages.ts';

const read = (page: string): string => readPage(page).replaceAll('\\\n', ' ');

describe.each(['README.md', 'docs/marketplace.md'])('the walk-through of %s', (path) => {
  const text = read(path);

  it('logs in without a question about the host key, and remembers none', () => {
    const logins = [...text.matchAll(/^ssh -i .*$/gm)].map(([line]) => line);
    expect(logins).not.toEqual([]);
    for (const login of logins) {
      expect(login).toContain('-o StrictHostKeyChecking=accept-new');
      expect(login).toContain('-o UserKnownHostsFile=/dev/null');
    }
  });

  it('writes no key and no configuration that git would take', () => {
    const keys = [...text.matchAll(/ssh-keygen .*-f \.\/(\S+)/g)].flatMap(([, key]) => [key, `${key}.pub`]);
    const files = [...keys, ...[...text.matchAll(/^cat > (\S+)/gm)].map(([, file]) => file)];
    expect(keys).not.toEqual([]);
    for (const file of files)
      expect([file, spawnSync('git', ['check-ignore', '-q', String(file)], { cwd: root }).status]).toEqual([
        file,
        0,
      ]);
  });
});

it('the deployment of the walk-through can be terminated at once', () => {
  const [, text = ''] =
    /^cat > marketplace\.yaml <<'END'\n([\s\S]*?)^END$/m.exec(read('docs/marketplace.md')) ?? [];
  const { billing } = marketplaceConfigSchema.parse(parse(text));
  expect(billing.minimum_runtime_minutes).toBe(0);
});

it('the README prepares a libvirt host as its page does, and the lab with it', () => {
  const partsOf = (page: string): string[] =>
    shellBlocksOf(readPage(page))
      .flatMap(commandsOf)
      .flatMap((command) => command.replaceAll(/\s*\\\n\s*/g, ' ').split(' && '))
      .filter((part) => /^(apt-get|virsh|install|systemctl) /.test(part));
  const parts = partsOf('README.md');
  expect(parts.length).toBeGreaterThan(5);
  expect(partsOf('docs/how-to/libvirt.md')).toEqual(expect.arrayContaining(parts));
});
