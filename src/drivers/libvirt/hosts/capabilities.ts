/** What a host's libvirt has for guests. */
export interface Capabilities {
  uefi: boolean;
  kvm: boolean;
}

/** What virsh is asked for them. */
export const DOMCAPABILITIES = 'domcapabilities --arch x86_64 --machine q35';

/** Reads what virsh prints. A libvirt that does not tell, such as its test driver, is taken to have all. */
export function readCapabilities(text: string): Capabilities {
  const tells = text.includes('<domainCapabilities>');
  return {
    uefi: !tells || text.includes('<value>efi</value>'),
    kvm: !tells || text.includes('<domain>kvm</domain>'),
  };
}
