// As much of the highlighter as the page uses.
declare const highlighter: {
  registerLanguage(name: string, language: unknown): void;
  getLanguage(name: string): unknown;
  highlight(code: string, options: { language: string; ignoreIllegals: boolean }): { value: string };
};
export default highlighter;
