import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { aDomain, aGpuDomain, aMark } from './domain-xml.fixture.ts';
import { macOf, readDomainXml, toDiskXml, toDomainXml, uuidOf } from './domain-xml.ts';
import { childrenOf, descend, element, parseXml, XmlError } from './xml.ts';

const devicesOf = (xml: string) => descend(parseXml(xml), 'devices') ?? element('none');

describe('a domain', () => {
  it('is read back as it was written', () => {
    const spec = aGpuDomain();
    expect(readDomainXml(toDomainXml(spec))).toEqual({
      card: undefined,
      name: spec.name,
      uuid: uuidOf(spec.name),
      vcpus: spec.vcpus,
      memoryMb: spec.memoryMb,
      mac: macOf(spec.name),
      disks: [
        { target: 'vda', path: spec.rootDiskPath, serial: 'root' },
        { target: 'vdb', path: spec.seedPath, serial: 'seed' },
      ],
      pciFunctions: spec.pciFunctions,
      mark: spec.mark,
    });
  });

  it('keeps any note and any path out of its markup [libvirt-xml-injection]', () => {
    const plain = toDomainXml(aDomain());
    const shapeOf = (xml: string): string => xml.replace(/>[^<]+</g, '><').replace(/"[^"]*"/g, '""');
    const text = fc.oneof(
      fc.constantFrom(
        '</name><hostdev/>',
        '</berth:note></metadata><devices/>',
        `'"><hostdev/>`,
        ']]>',
        '<!--',
      ),
      fc.string({ unit: 'grapheme' }).filter((some) => some !== '' && some === some.trim()),
    );
    fc.assert(
      fc.property(text, text, (note, path) => {
        let xml: string;
        try {
          xml = toDomainXml(aDomain({ seedPath: path, mark: aMark({ note }) }));
        } catch (error) {
          expect(error).toBeInstanceOf(XmlError);
          return;
        }
        expect(shapeOf(xml)).toBe(shapeOf(plain));
        const read = readDomainXml(xml);
        expect([read.mark?.note, read.disks[1]?.path, read.pciFunctions]).toEqual([note, path, []]);
      }),
    );
  });

  it('stays off when its guest has shut down or crashed, and runs on after a reboot', () => {
    const domain = parseXml(toDomainXml(aDomain()));
    const ends = ['on_poweroff', 'on_crash', 'on_reboot'].map((event) => descend(domain, event)?.children);
    expect(ends).toEqual([['destroy'], ['destroy'], ['restart']]);
  });

  it('is refused if XML cannot represent a text', () => {
    expect(() => toDomainXml(aDomain({ name: 'a\u0000b' }))).toThrow('U+0000');
  });

  it('keeps a note that XML cannot hold', () => {
    for (const note of ['a\u0000b', '{"name":"\u{fffe}東京"}', 'lone \ud800'])
      expect(readDomainXml(toDomainXml(aDomain({ mark: aMark({ note }) }))).mark?.note).toBe(note);
  });

  it('has the CPU of the host on KVM, and the maximum QEMU CPU without KVM', () => {
    const cpuOf = (xml: string): unknown => descend(parseXml(xml), 'cpu')?.attributes;
    expect(cpuOf(toDomainXml(aDomain()))).toEqual({ mode: 'maximum' });
    expect(cpuOf(toDomainXml(aDomain({ accelerator: 'kvm' })))).toEqual({ mode: 'host-passthrough' });
    expect(parseXml(toDomainXml(aDomain())).attributes['type']).toBe('qemu');
    expect(parseXml(toDomainXml(aDomain({ accelerator: 'kvm' }))).attributes['type']).toBe('kvm');
  });

  it('has a port for each device, and spare ports for hot-plugged ones', () => {
    const portsOf = (xml: string): number =>
      childrenOf(devicesOf(xml), 'controller').filter(
        ({ attributes }) => attributes['model'] === 'pcie-root-port',
      ).length;
    const none = portsOf(toDomainXml(aDomain({ hotplugSlots: 0 })));
    expect(portsOf(toDomainXml(aDomain({ hotplugSlots: 5 })))).toBe(none + 5);
    expect(portsOf(toDomainXml(aDomain({ hotplugSlots: 0, pciFunctions: ['0000:65:00.0'] })))).toBe(none + 1);
  });

  it('leaves the binding of its GPUs alone', () => {
    const hostdevs = childrenOf(devicesOf(toDomainXml(aGpuDomain())), 'hostdev');
    expect(hostdevs.map(({ attributes }) => attributes['managed'])).toEqual(['no', 'no', 'no']);
    expect(descend(hostdevs[2], 'source', 'address')?.attributes).toEqual({
      domain: '0x0001',
      bus: '0xff',
      slot: '0x1f',
      function: '0x7',
    });
  });

  it('disables guest suspend, in which a STOPPED machine would keep its resources [libvirt-no-sleep]', () => {
    const xml = toDomainXml(aDomain());
    for (const state of ['mem', 'disk']) expect(xml).toContain(`<suspend-to-${state} enabled="no"/>`);
  });
});

describe('the mark', () => {
  it('is not Berth’s in another namespace or with another creator', () => {
    const xml = toDomainXml(aDomain());
    expect(readDomainXml(xml).mark?.ref).toBe('berth-inst-1');
    expect(readDomainXml(xml.replace('urn:berth:machine:1', 'urn:other')).mark).toBeUndefined();
    expect(readDomainXml(xml.replace('created-by="berth"', 'created-by="nova"')).mark).toBeUndefined();
  });

  it('leaves out absent fields', () => {
    expect(readDomainXml(toDomainXml(aDomain({ mark: aMark({ note: '' }) }))).mark).toEqual(
      aMark({ note: '' }),
    );
  });

  it('of an unknown state counts as held', () => {
    const xml = toDomainXml(aDomain()).replace('state="held"', 'state="later"');
    expect(readDomainXml(xml).mark?.claim).toBe('held');
  });
});

describe('a foreign domain', () => {
  it('is read too, with memory in any unit', () => {
    const xml = (
      memory: string,
    ): string => `<domain type='kvm'><name>db</name>${memory}<vcpu>4</vcpu><devices>
      <hostdev mode='subsystem' type='pci'><source><address domain='0x0000' bus='0x0a' slot='0x00' function='0x1'/></source></hostdev>
      <hostdev mode='subsystem' type='usb'><source><address bus='1' device='2'/></source></hostdev>
      </devices></domain>`;
    expect(readDomainXml(xml("<memory unit='KiB'>2097152</memory>"))).toMatchObject({
      memoryMb: 2048,
      vcpus: 4,
      pciFunctions: ['0000:0a:00.1'],
      mark: undefined,
    });
    expect(readDomainXml(xml("<memory unit='GiB'>3</memory>")).memoryMb).toBe(3072);
    expect(readDomainXml(xml('<memory>1025</memory>')).memoryMb).toBe(2);
  });
});

it('derives a MAC address and a UUID from the ref', () => {
  expect(macOf('berth-inst-1')).toMatch(/^52:54:00(:[0-9a-f]{2}){3}$/);
  expect(macOf('berth-inst-1')).toBe(macOf('berth-inst-1'));
  expect(macOf('berth-inst-2')).not.toBe(macOf('berth-inst-1'));
  expect(uuidOf('berth-inst-1')).toMatch(
    /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
  );
});

it('writes a single disk for a hot-plug', () => {
  expect(toDiskXml({ path: '/v', format: 'qcow2', target: 'vdc', serial: 'vol-1' })).toBe(
    '<disk type="file" device="disk"><driver name="qemu" type="qcow2" discard="unmap"/><source file="/v"/>' +
      '<target dev="vdc" bus="virtio"/><serial>vol-1</serial></disk>',
  );
});
