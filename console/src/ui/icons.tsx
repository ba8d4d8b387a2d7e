import type { ComponentChildren } from 'preact';

const draw = (shapes: ComponentChildren) => () => (
  <svg
    class="icon"
    viewBox="0 0 16 16"
    fill="none"
    stroke="currentColor"
    stroke-width="1.5"
    stroke-linecap="round"
    stroke-linejoin="round"
    aria-hidden="true"
  >
    {shapes}
  </svg>
);

export const TerminalIcon = draw(<path d="M2.5 3.5l4 4-4 4M8.5 12h5" />);
export const ListIcon = draw(<path d="M5.5 4h8M5.5 8h8M5.5 12h8M2.5 4h.01M2.5 8h.01M2.5 12h.01" />);
export const BookIcon = draw(
  <path d="M8 4.5C6.5 3.300 4.5 3 2.5 3v9c2 0 4 .3 5.5 1.5C9.5 12.300 11.5 12 13.5 12V3c-2 0-4 .3-5.5 1.5zm0 0v9" />,
);
export const PlayIcon = draw(<path d="M4.5 3l8 5-8 5z" fill="currentColor" />);
export const StopIcon = draw(<rect x="4" y="4" width="8" height="8" rx="1" fill="currentColor" />);
export const AgainIcon = draw(<path d="M13 8a5 5 0 1 1-1.5-3.600M13 2.5v2.5h-2.5" />);
export const PlusIcon = draw(<path d="M8 3.5v9M3.5 8h9" />);
export const UpIcon = draw(<path d="M4 10l4-4 4 4" />);
export const DownIcon = draw(<path d="M4 6l4 4 4-4" />);
export const EndIcon = draw(<path d="M8 3v8M4.5 7.5L8 11l3.5-3.5M4 13.5h8" />);
export const WrapIcon = draw(
  <path d="M2.5 4h11M2.5 8h8.5a2 2 0 0 1 0 4H8M9.5 10.5L8 12l1.5 1.5M2.5 12h2.5" />,
);
export const CopyIcon = draw(<path d="M6 5.5h7v8H6zM10 5.5v-3H3v8h3" />);
export const DownloadIcon = draw(<path d="M8 2.5v7M5 7l3 3 3-3M3 13h10" />);
export const UploadIcon = draw(<path d="M8 9.500v-7M5 5.500l3-3 3 3M3 13h10" />);
export const HistogramIcon = draw(
  <path d="M3 13.500V8M6.500 13.500v-10M10 13.500V6M13.500 13.500v-3" />,
);
export const PlotIcon = draw(<path d="M2.500 2.500v11h11M4.500 10.500l3-4 2.500 2 3.500-5" />);
export const ClockIcon = draw(
  <>
    <circle cx="8" cy="8" r="5.5" />
    <path d="M8 5v3l2 1.5" />
  </>,
);
export const GaugeIcon = draw(
  <path d="M2.5 11.5a5.500 5.500 0 1 1 11 0M8 11l2.500-3.500M2.500 13.500h11" />,
);
export const BoxIcon = draw(
  <path d="M2.500 5L8 2l5.500 3v6L8 14l-5.500-3zM2.500 5L8 8l5.500-3M8 8v6" />,
);
export const FolderIcon = draw(<path d="M2 4.500h4l1.500 2H14v6.500H2z" />);
export const FileIcon = draw(<path d="M4 2h5l3 3v9H4zM9 2v3h3" />);
export const VideoIcon = draw(<path d="M2 4h8.500v8H2zM10.500 7l3.500-2v6l-3.500-2" />);
export const PauseIcon = draw(<path d="M5.500 3.500v9M10.500 3.500v9" />);
export const StepBackIcon = draw(<path d="M11.500 3.500L5.500 8l6 4.500zM4 3.500v9" />);
export const StepIcon = draw(<path d="M4.500 3.500l6 4.500-6 4.500zM12 3.500v9" />);
export const FullIcon = draw(
  <path d="M2.500 6V2.500H6M10 2.500h3.500V6M13.500 10v3.500H10M6 13.500H2.500V10" />,
);
export const SunIcon = draw(
  <>
    <circle cx="8" cy="8" r="2.75" />
    <path d="M8 1.5v1M8 13.5v1M1.5 8h1M13.5 8h1M3.400 3.400l.7.7M11.900 11.900l.7.7M3.400 12.600l.7-.7M11.900 4.100l.7-.7" />
  </>,
);
export const MoonIcon = draw(<path d="M13 9.5A5.5 5.5 0 0 1 6.5 3a5.5 5.5 0 1 0 6.5 6.5z" />);
export const LeaveIcon = draw(<path d="M6.5 2.5h-3v11h3M10 5l3 3-3 3M13 8H6.5" />);
export const CloseIcon = draw(<path d="M4 4l8 8M12 4l-8 8" />);
export const PersonIcon = draw(
  <path d="M8 8.500a2.750 2.750 0 1 0 0-5.500 2.750 2.750 0 0 0 0 5.500zM3 13.500c.600-2 2.500-3 5-3s4.400 1 5 3" />,
);
