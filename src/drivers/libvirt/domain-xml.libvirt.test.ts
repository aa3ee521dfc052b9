import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { aDomain, aGpuDomain, aMark } from './domain-xml.fixture.ts';
import { type DomainSpec, readDomainXml, toDomainXml } from './domain-xml.ts';
import { toMarkElement, toMetadata, toReleaseElement } from './machine-mark.ts';
import { serializeXml } from './xml.ts';

const specs: [string, DomainSpec][] = [
  ['a small machine', aDomain()],
  ['a machine with GPUs', aGpuDomain()],
];

const hostile = [
  '</name><hostdev/>',
  '</berth:note></berth:machine></metadata><devices><hostdev mode="subsystem" type="pci"/></devices>',
  ']]>&amp;<![CDATA[x]]>',
  '<!ENTITY x SYSTEM "file:///etc/passwd"> &x;',
  ' \t\n\r leading and trailing \r\n',
  '\u0085\u2028 \u{1f600} é',
];

/** Writes the text to a file that is deleted after the test. */
function fileOf(text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'berth-domain-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, 'domain.xml'), text);
  return join(folder, 'domain.xml');
}

/** Each `virsh` on `test:///default` starts with fresh hosts, so related commands must share one command line. */
function defineAndDump(xml: string, name: string): string {
  const script = `define ${fileOf(xml)}; dumpxml ${name}`;
  const output = execFileSync('virsh', ['-q', '-c', 'test:///default', script], {
    encoding: 'utf8',
    stdio: 'pipe',
  });
  return output.slice(output.indexOf('<domain'));
}

describe("libvirt's own schema", () => {
  it.each(specs)('takes %s', (_name, spec) => {
    const { status, stdout, stderr } = spawnSync('virt-xml-validate', [fileOf(toDomainXml(spec)), 'domain'], {
      encoding: 'utf8',
    });
    expect([stdout + stderr, status]).toEqual([expect.stringContaining('validates'), 0]);
  });

  it('rejects a disk in place of the name', () => {
    const wrong = toDomainXml(aDomain()).replace(/<name>.*<\/name>/, '<disk/>');
    expect(spawnSync('virt-xml-validate', [fileOf(wrong), 'domain']).status).not.toBe(0);
  });
});

describe('libvirt returns what was written', () => {
  it.each(specs)('for %s', (_name, spec) => {
    const read = readDomainXml(defineAndDump(toDomainXml(spec), spec.name));
    expect({ ...read, card: undefined }).toEqual(readDomainXml(toDomainXml(spec)));
  });

  it.each(hostile)('for the note and the path %j [libvirt-xml-round-trip]', (text) => {
    const path = `/images/${text.replaceAll(/\s+/g, ' ').trim()}`;
    const spec = aDomain({ seedPath: path, mark: aMark({ note: text, memo: text }) });
    const read = readDomainXml(defineAndDump(toDomainXml(spec), spec.name));
    expect(read.mark).toEqual(spec.mark);
    expect(read.disks[1]?.path).toBe(path);
    expect(read.pciFunctions).toEqual([]);
  });

  it.each(hostile)('for the note %j in a mark that is written alone, and the rest stays as it is', (text) => {
    const spec = aGpuDomain();
    const mark = { ...spec.mark, note: text, memo: text };
    const own = '<theirs:x xmlns:theirs="urn:theirs"/>';
    const xml = toDomainXml(spec).replace('<metadata>', `<metadata>${own}`);
    const set = serializeXml(toMetadata(toMarkElement(mark)))
      .replaceAll('\\', '\\\\')
      .replaceAll("'", "'\\''");
    const script =
      `define ${fileOf(xml)}; metadata --config --key berth --set '${set}' -- ${spec.name} ` +
      `urn:berth:machine:1; dumpxml --inactive ${spec.name}`;
    const output = execFileSync('virsh', ['-q', '-c', 'test:///default', script], { encoding: 'utf8' });
    const shown = output.slice(output.indexOf('<domain'));
    expect(shown).toContain('urn:theirs');
    expect({ ...readDomainXml(shown), card: undefined }).toEqual({ ...readDomainXml(xml), mark });
  });

  it('for the word that a disown writes in place of the mark', () => {
    const spec = aGpuDomain();
    const own = '<theirs:x xmlns:theirs="urn:theirs"/>';
    const xml = toDomainXml(spec).replace('<metadata>', `<metadata>${own}`);
    const release = { ref: spec.name, at: 1_700_000_000_000, hostPort: 30_000 };
    const set = serializeXml(toMetadata(toReleaseElement(release)));
    const script =
      `define ${fileOf(xml)}; metadata --config --key berth --set '${set}' -- ${spec.name} ` +
      `urn:berth:machine:1; dumpxml --inactive ${spec.name}`;
    const output = execFileSync('virsh', ['-q', '-c', 'test:///default', script], { encoding: 'utf8' });
    const shown = output.slice(output.indexOf('<domain'));
    expect(shown).toContain('urn:theirs');
    const read = { ...readDomainXml(shown), card: undefined };
    expect(read).toEqual({ ...readDomainXml(xml), mark: undefined, release });
    const alone = serializeXml(toReleaseElement(release));
    const whole = xml.replace(/<berth:machine.*<\/berth:machine>/s, alone);
    expect(readDomainXml(defineAndDump(whole, spec.name)).release).toEqual(release);
  });

  it('for a name that would be markup', () => {
    const name = '<hostdev>&"]]>';
    const read = readDomainXml(defineAndDump(toDomainXml(aDomain({ name })), `'${name}'`));
    expect([read.name, read.pciFunctions]).toEqual([name, []]);
  });

  it('or rejects a name with a slash itself', () => {
    const name = '</name><hostdev/>';
    expect(() => defineAndDump(toDomainXml(aDomain({ name })), `'${name}'`)).toThrow(
      `name ${name} cannot contain '/'`,
    );
  });
});
