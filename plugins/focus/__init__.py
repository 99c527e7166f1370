"""[[focus]] and the weights of [opic]: the virtual page pays some pages more than others (P1 5.2; opic/focus.py).

classes.py    which class of the virtual page each page is in        interest.py   which pages lead to documents
"""
