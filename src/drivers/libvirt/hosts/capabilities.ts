/** Features of a host's libvirt for guests. */
export interface Capabilities {
  uefi: boolean;
  kvm: boolean;
}

/** The virsh command that prints the capabilities. */
export const DOMCAPABILITIES = 'domcapabilities --arch x86_64 --machine q35';

/** Parses virsh's output. A libvirt without that information, such as its test driver, counts as having all. */
export function readCapabilities(text: string): Capabilities {
  const tells = text.includes('<domainCapabilities>');
  return {
    uefi: !tells || text.includes('<value>efi</value>'),
    kvm: !tells || text.includes('<domain>kvm</domain>'),
  };
}
