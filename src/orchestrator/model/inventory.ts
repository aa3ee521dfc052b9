/**
 * How many more machines of an offer the platform can make in a datacenter now. An answer has one figure for each pair
 * of the two.
 */
export interface FreeUnits {
  offerId: string;
  datacenter: string;
  units: number;
  /**
   * Why no unit is free, for each host, such as `kvm-1: it has 11 GB of free disk, but 20 are needed`. Absent if units
   * are free, or the driver does not say. For the operator.
   */
  obstacles?: readonly string[];
  /**
   * Why no host would have room for one machine even if Berth had no machine there, for each host. Absent if one would,
   * or the driver does not say. For the operator.
   */
  misfits?: readonly string[];
}

/** How much of a resource a host can promise, and how much of it is taken. */
export interface HostShare {
  total: number;
  taken: number;
}

export const deviceStates = ['free', 'claimed', 'dirty', 'quarantined', 'unusable'] as const;

/** A device of a host that is for sale, such as a GPU. */
export interface HostDevice {
  /** The platform's name for it, such as its PCI address. */
  id: string;
  type: string;
  /**
   * `claimed`: a machine has it, or a stopped machine holds it. `dirty`: not reset since a machine had it.
   * `quarantined`: it failed and waits for an operator. `unusable`: the host's setup does not allow it to be assigned.
   */
  state: (typeof deviceStates)[number];
  /** The ref of Berth's machine that has it. */
  ref?: string;
  /** Why the device is not free. */
  detail?: string;
}

export const hostStates = ['open', 'closed', 'silent'] as const;

/** A host, shown to the operator. No decision depends on it. */
export interface ObservedHost {
  host: string;
  /** `closed`: nothing new is placed there. `silent`: it does not answer. */
  state: (typeof hostStates)[number];
  /** Why the host is not open. */
  detail?: string;
  /** Absent if unknown. */
  vcpus?: HostShare;
  memoryGb?: HostShare;
  diskGb?: HostShare;
  devices?: readonly HostDevice[];
}

/** Free capacity of the platform's hosts. Each offer is counted as if it were the only one for sale. */
export type Inventory =
  | {
      answer: 'counted';
      free: readonly FreeUnits[];
      /**
       * The machines that `free` already takes into account, at the same moment. If absent, these are the machines of
       * the last listing, so free capacity is underestimated while machines are being made or removed.
       */
      counted?: readonly string[];
      /** Why fewer units are free than the hosts have room for, such as `quota: cores 40 of 40`. For the operator. */
      limitedBy?: readonly string[];
      /** Every host, including silent ones. Absent if the platform does not report hosts. */
      hosts?: readonly ObservedHost[];
    }
  | { answer: 'unknown'; reason: string };
